/**
 * `/webhooks/…` on raw node:http. The order of work is fixed: path, method, size, source, body, and only then the intake, which starts with
 * the signature. Paths:
 *   /webhooks/<source>            the source's rule finds the entity
 *   /webhooks/<source>/<entity>   the URL names it, and must agree with what the payload says
 *   /webhooks/<entity>            anything that is no source: the generic scheme, the URL names the entity
 * Anything else below /webhooks is no address, whatever the method. Names of sources are read in any case, as entities are: an address that
 * was meant for a source must not be verified by the generic scheme because of a capital letter.
 */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { WebhooksConfig } from "../config/webhook-keys.ts";
import type { Area } from "../http/area.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Admission } from "./admission.ts";
import { readDeliveryBody, refuseDeclaredSize } from "./delivery-body.ts";
import type { Answer } from "./delivery-result.ts";
import type { ArrivedDelivery, Intake } from "./intake.ts";
import { normalise } from "./instance-name.ts";
import { signedUrls } from "./signed-urls.ts";
import type { Source } from "./source.ts";

export interface FrontDoorParts {
  readonly sources: ReadonlyMap<string, Source>;
  readonly generic: Source;
  readonly intake: Intake;
  readonly admission: Admission;
  readonly config: WebhooksConfig;
}

export function createFrontDoor(parts: FrontDoorParts): Area {
  return {
    name: "webhooks",
    segments: ["webhooks"],
    dialect: "envelope",
    handle: (request, response, context) => handle(parts, request, response, context),
  };
}

async function handle(
  parts: FrontDoorParts,
  request: HttpRequest,
  response: HttpResponse,
  context: RequestContext,
): Promise<void> {
  if (!isIntakePath(context.segments)) throw new SignalboxError("not_found");
  if (request.method !== "POST")
    throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
  const { route, body } = await arrive(parts, request, context.segments);
  const arrived: ArrivedDelivery = {
    ...route,
    headers: request.headers,
    body,
    reservedBytes: body.length,
    urls: () => signedUrls(request, parts.config.publicUrl),
  };
  send(response, await parts.intake.receive(arrived));
}

/** Size, source, body; what fails here is told to the inspector as far as its source is known, and to nobody else. */
async function arrive(
  parts: FrontDoorParts,
  request: HttpRequest,
  segments: readonly string[],
): Promise<{ route: Destination; body: Buffer }> {
  let route: Destination | undefined;
  try {
    refuseDeclaredSize(request, parts.config.maxBodyBytes);
    route = findRoute(parts, segments);
    return { route, body: await readDeliveryBody(request, parts.config, parts.admission) };
  } catch (error) {
    const { source } = route ?? { source: findSource(parts.sources, segments[1] ?? "") };
    if (source !== undefined) parts.intake.recordUnread(source, request.headers, error);
    throw error;
  }
}

type Destination = Pick<ArrivedDelivery, "source" | "urlEntity">;

/** One or two segments, and perhaps a slash behind them. */
function isIntakePath([, first = "", , ...rest]: readonly string[]): boolean {
  return first !== "" && rest.every((segment) => segment === "");
}

function findRoute({ sources, generic }: FrontDoorParts, segments: readonly string[]): Destination {
  const [, first = "", second = ""] = segments;
  const source = findSource(sources, first);
  if (source !== undefined) return { source, urlEntity: second === "" ? null : second };
  if (second !== "") throw new SignalboxError("webhook_unknown_source");
  return { source: generic, urlEntity: first };
}

function findSource(sources: ReadonlyMap<string, Source>, segment: string): Source | undefined {
  return sources.get(segment) ?? sources.get(normalise(segment));
}

function send(response: HttpResponse, answer: Answer): void {
  if (answer.status === 204) {
    response.writeHead(204);
    response.end();
    return;
  }
  response.writeHead(answer.status, {
    "content-type": answer.contentType,
    "content-length": Buffer.byteLength(answer.body),
    // Some answers repeat what the sender sent.
    "x-content-type-options": "nosniff",
  });
  response.end(answer.body);
}
