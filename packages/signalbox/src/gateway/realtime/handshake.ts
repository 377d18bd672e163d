/** The client's side of a handshake: what is a handshake, and the provider's refusal as the client sees it. */
import { SignalboxError } from "@signalbox/protocol";
import { type HttpRequest, STATUS_CODES } from "../../engines/http-server/index.ts";
import { INERT_HEADERS } from "../../http/foreign-answer.ts";
import type { Dialled } from "./dial.ts";

const VERSIONS: readonly string[] = ["13", "8"];
const HANDSHAKE_KEY = /^[+/0-9A-Za-z]{22}==$/;
const TOKENS = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:[ \t]*,[ \t]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+)*$/;

/** Throws for a request that is no handshake (RFC 6455, section 4.2.1), before a provider is dialled for it. */
export function requireHandshake({ method, headers }: HttpRequest): void {
  if (method !== "GET") throw new SignalboxError("method_not_allowed", { headers: { allow: "GET" } });
  if (headers.upgrade?.toLowerCase() !== "websocket") throw notAHandshake("Upgrade must be websocket");
  if (!HANDSHAKE_KEY.test(headers["sec-websocket-key"] ?? "")) {
    throw notAHandshake("Sec-WebSocket-Key is missing or malformed");
  }
  if (!VERSIONS.includes(headers["sec-websocket-version"] ?? "")) {
    throw new SignalboxError("malformed_http", {
      message: "Unsupported Sec-WebSocket-Version",
      headers: { "sec-websocket-version": VERSIONS.join(", ") },
    });
  }
  const protocols = headers["sec-websocket-protocol"];
  if (protocols === undefined) return;
  const all = protocols.split(",").map((name) => name.trim());
  if (!TOKENS.test(protocols) || new Set(all).size !== all.length) {
    throw notAHandshake("Sec-WebSocket-Protocol is malformed");
  }
}

function notAHandshake(message: string): SignalboxError {
  return new SignalboxError("malformed_http", { message });
}

/** The head of the response to a client whose session the provider has refused. */
export function refusalHead(
  refused: Extract<Dialled, { kind: "refused" }>,
  marks: Readonly<Record<string, string>>,
): string {
  const { status, contentType, retryAfter, body } = refused;
  const headers = Object.entries({
    ...INERT_HEADERS,
    // A provider that sends a line break here breaks its own response, not the next one.
    "content-type": contentType.replaceAll(/[\r\n]/g, " "),
    "content-length": String(body.length),
    "gw-aig-error-origin": "provider",
    ...marks,
    ...(retryAfter === undefined ? {} : { "retry-after": retryAfter.replaceAll(/[\r\n]/g, " ") }),
    connection: "close",
  });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines}\r\n`;
}
