/**
 * `signalbox webhooks send`: sends a signed sample event. If the command has the source's secret, it signs and posts the event like the
 * provider; otherwise the server signs the event with its own secret.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { DeliveryError, SampleDelivery } from "@signalbox/client";
import { nearestName } from "../core/nearest-name.ts";
import { ulid } from "../core/ulid.ts";
import type { Source } from "../webhooks/index.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { findAddress } from "./find-server.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";

interface SentDelivery {
  readonly status: number;
  readonly body: string;
  readonly delivery_id: string;
  /** Known if the server signed the event. */
  readonly instance?: string | null;
  readonly error?: DeliveryError | null;
}

const SAMPLE_ENTITY = "sample/entity";

export const webhooksSend: Command = {
  words: ["webhooks", "send"],
  positionals: ["<source>", "[entity]"],
  summary: "Send a sample event, signed as the source's provider signs its events.",
  options: [
    { name: "type", value: "TYPE", summary: "event type instead of the sample's" },
    { name: "payload", value: "JSON", summary: "body of the event (default: a sample); @FILE reads a file" },
    {
      name: "header",
      value: "NAME:VALUE",
      summary: "additional header, e.g. x-github-event:issues (repeatable)",
      isRepeatable: true,
    },
    {
      name: "id",
      value: "ID",
      summary: "delivery id (default: a new one); a second delivery with the same id is a duplicate",
    },
    {
      name: "secret",
      value: "TEXT",
      summary: "secret of the signature (default: from the source's environment variable)",
    },
    ACCOUNT_OPTION,
    ...CLIENT_OPTIONS,
  ],
  async run(context) {
    const environment = readEnvironment(context);
    const [{ loadConfig }, { createSources, readSecrets }] = await Promise.all([
      import("../config/index.ts"),
      import("../webhooks/index.ts"),
    ]);
    const config = await loadConfig(toFlags(context), environment, context.workingFolder);
    const sources = createSources(config.file.webhooks, {});
    const source = sources.get(context.positionals[0] ?? "");
    const secret =
      context.option("secret") ??
      (source === undefined ? undefined : readSecrets(environment, source.secretVariable)[0]);
    const sent =
      source === undefined || secret === undefined
        ? await sendThroughServer(context, source ?? (await findAtServer(context, sources)))
        : await sendSigned(context, source, secret);
    context.print(sent, showSent);
    return sent.status < 300 ? 0 : 1;
  },
};

function showSent({ status, body, delivery_id, error }: SentDelivery): string {
  const why = error == null ? "" : `${error.stack ?? `${error.name}: ${error.message}`}\n`;
  return `${status} ${body} (delivery ${delivery_id})\n${why}`;
}

async function sendSigned(context: CommandContext, source: Source, secret: string): Promise<SentDelivery> {
  const { createSampleRequest } = await import("../webhooks/index.ts");
  // Signed by this command: an explicit address needs no token.
  const given = findAddress(context, readEnvironment(context))?.url;
  const base = given ?? (await context.trafficUrl());
  const send = given === undefined ? await context.fetch() : fetch;
  const deliveryId = context.option("id") ?? `sample-${ulid()}`;
  if (source.scheme.certificateUrl !== undefined)
    throw new UsageError(
      `only ${source.scheme.onlySigner ?? source.name} can sign deliveries of ${source.name}`,
    );
  const payload = readPayload(context);
  const entity = context.positionals[1];
  const path = payload !== undefined && entity !== undefined ? `/${encodeURIComponent(entity)}` : "";
  const request = createSampleRequest(source, {
    entity: entity ?? SAMPLE_ENTITY,
    secret,
    deliveryId,
    now: Date.now(),
    url: `${base.replace(/\/+$/, "")}/webhooks/${source.name}${path}`,
    type: context.option("type"),
    body: payload,
    headers: readHeaders(context),
  });
  const { headers, body } = request;
  const response = await send(request.url, { method: "POST", headers, body }).catch((error: unknown) =>
    throwUnreachable(base, error),
  );
  return { status: response.status, body: await response.text(), delivery_id: deliveryId };
}

/** The error of the client, which other commands use, so that it is explained as theirs. */
async function throwUnreachable(url: string, error: unknown): Promise<never> {
  const { SignalboxApiError } = await import("@signalbox/client");
  const reason = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
  throw new SignalboxApiError({
    status: 0,
    code: 0,
    message: `cannot reach ${url}: ${reason}`,
    cause: error,
  });
}

async function sendThroughServer(
  context: CommandContext,
  source: Pick<Source, "name" | "secretVariable">,
): Promise<SentDelivery> {
  if (context.option("id") !== undefined) {
    throw new UsageError(`--id needs a secret: give --secret or set ${source.secretVariable}`);
  }
  const payload = readPayload(context);
  const { webhooks } = await context.account();
  return webhooks.sendTest(source.name, {
    entity: context.positionals[1],
    type: context.option("type"),
    headers: readHeaders(context),
    payload: payload === undefined ? undefined : (JSON.parse(payload) as SampleDelivery["payload"]),
  });
}

/** A source of the server's configuration, which need not be that of this folder. */
async function findAtServer(
  context: CommandContext,
  local: ReadonlyMap<string, Source>,
): Promise<Pick<Source, "name" | "secretVariable">> {
  const [name = ""] = context.positionals;
  const { webhooks } = await context.account();
  const known = await webhooks.sources().all();
  const found = known.find((source) => source.name === name);
  if (found !== undefined) return { name, secretVariable: found.secret_variable };
  const nearest = nearestName(name, [...local.keys(), ...known.map((source) => source.name)]);
  throw new UsageError(
    `unknown source "${name}"${nearest === undefined ? "" : `, did you mean "${nearest}"?`}`,
  );
}

function readPayload(context: CommandContext): string | undefined {
  const given = context.option("payload");
  if (given === undefined) return undefined;
  try {
    const text = given.startsWith("@")
      ? readFileSync(resolve(context.workingFolder, given.slice(1)), "utf8")
      : given;
    JSON.parse(text);
    return text;
  } catch (cause) {
    throw new UsageError(`--payload: expected JSON or @FILE with JSON, found "${given.slice(0, 40)}"`, {
      cause,
    });
  }
}

function readHeaders(context: CommandContext): Record<string, string> {
  return Object.fromEntries(
    context.options("header").map((text) => {
      const at = text.indexOf(":");
      if (at < 1) throw new UsageError(`--header: expected NAME:VALUE, found "${text}"`);
      return [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()];
    }),
  );
}
