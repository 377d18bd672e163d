/**
 * `/webhooks/…`. The order of work is fixed: path, method, declared size, source, body, and then the intake, which verifies the signature
 * first. Paths:
 *   /webhooks/<source>            the source's rules find the entity
 *   /webhooks/<source>/<entity>   the address names the entity and must agree with the payload
 *   /webhooks/<entity>            a name that is no source: the generic scheme, and the address names the entity
 * Other paths below /webhooks do not exist, whatever the method. Names of sources are case-insensitive, as entities in addresses are: a delivery to
 * `/webhooks/GitHub` must not be verified by the generic scheme.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { WebhooksConfig } from "../config/webhook-keys.ts";
import type { HttpRequest, HttpResponse, MemoryBudget } from "../engines/http-server/index.ts";
import type { Area } from "../http/area.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Answer } from "./delivery-record.ts";
import { fold } from "./entity-names.ts";
import type { ArrivedDelivery, Intake } from "./intake.ts";
import type { Source } from "./source.ts";

export interface FrontDoorParts {
  readonly sources: ReadonlyMap<string, Source>;
  readonly generic: Source;
  readonly intake: Intake;
  /** Memory for bodies, from their arrival to the end of their delivery's work. */
  readonly bodies: MemoryBudget;
  readonly config: WebhooksConfig;
  /** Of the sender, past trusted proxies. */
  readonly addressOf: (request: HttpRequest) => string | null;
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
  const { intake, bodies, config } = parts;
  const { headers, method } = request;
  const { segments } = context;
  if (!isIntakePath(segments)) throw new SignalboxError("not_found");
  if (method !== "POST") throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
  const route = findRoute(parts, segments);
  if (route === null) {
    // The declared size comes before the source. The reader refuses such a body without reading it.
    if (Number(headers["content-length"]) > config.maxBodyBytes) await context.readBody(config.maxBodyBytes);
    throw new SignalboxError("webhook_unknown_source");
  }
  const address = () => parts.addressOf(request);
  let body: Buffer;
  try {
    // A sender is known by its signature, which needs the body. Until then the memory is shared by sources.
    body = await context.readBody(config.maxBodyBytes, bodies.shareOf(route.source.name));
  } catch (error) {
    intake.recordUnread(route.source, { headers, address }, error);
    throw error;
  }
  const arrived: ArrivedDelivery = {
    ...route,
    headers,
    body,
    releaseBody: context.memory.handOver(),
    urls: () => signedUrls(request, config.publicUrl),
    target: request.url,
    address,
  };
  send(response, await intake.receive(arrived));
}

type Route = Pick<ArrivedDelivery, "source" | "urlEntity">;

/** One or two segments, and perhaps a trailing slash. */
function isIntakePath([, first = "", , ...rest]: readonly string[]): boolean {
  return first !== "" && rest.every((segment) => segment === "");
}

/** Null when the path has two segments and the first names no source. */
function findRoute({ sources, generic }: FrontDoorParts, segments: readonly string[]): Route | null {
  const [, first = "", second = ""] = segments;
  const source = sources.get(first) ?? sources.get(fold(first));
  if (source !== undefined) return { source, urlEntity: second === "" ? null : second };
  return second === "" ? { source: generic, urlEntity: first } : null;
}

/**
 * The addresses that a sender may have signed (Twilio signs its address). With `publicUrl` there is one. Without it the `Host` header names
 * the host, a proxy that terminates TLS hides the scheme, and Twilio is inconsistent about default ports, so all combinations are tried. A
 * signature over a wrong address is still invalid.
 */
function signedUrls(request: HttpRequest, publicUrl: string | undefined): string[] {
  const target = request.url ?? "/";
  if (publicUrl !== undefined) return [publicUrl.replace(/\/+$/, "") + target];
  const host = request.headers.host ?? "";
  const bare = host.replace(/:\d+$/, "");
  const origins = new Set([
    `https://${host}`,
    `http://${host}`,
    `https://${bare}`,
    `http://${bare}`,
    `https://${bare}:443`,
    `http://${bare}:80`,
  ]);
  return [...origins].map((origin) => origin + target);
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
    // Some answers repeat text of the sender.
    "x-content-type-options": "nosniff",
  });
  response.end(answer.body);
}
