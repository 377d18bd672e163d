/** A provider's response headers as the client gets them: less hop-by-hop, plus what the gateway says about the call. */
import type { ResponseHead } from "../upstream/response-parser.ts";
import { gatewayHeaderName } from "./call-options.ts";

export interface ResponseMarks {
  readonly logId: string | null;
  readonly cacheStatus: "HIT" | "MISS" | null;
  readonly step: number | null;
  readonly errorOrigin: "gateway" | "provider" | null;
}

const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Flat list for `writeHead`. A provider's own `x-request-id` stays: it is the one its support asks for. */
export function toClientHeaders(head: ResponseHead, marks: ResponseMarks): string[] {
  const headers: string[] = [];
  const { rawHeaders } = head;
  const named = connectionNames(rawHeaders);
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? "";
    const name = raw.toLowerCase();
    // Only the gateway speaks for the gateway: a provider must not be able to claim its marks.
    if (HOP_BY_HOP.has(name) || named?.has(name) === true || gatewayHeaderName(name) !== null) continue;
    headers.push(raw, rawHeaders[i + 1] ?? "");
  }
  if (marks.logId !== null) headers.push("gw-aig-log-id", marks.logId);
  if (marks.cacheStatus !== null) headers.push("gw-aig-cache-status", marks.cacheStatus);
  if (marks.step !== null) headers.push("gw-aig-step", String(marks.step));
  if (marks.errorOrigin !== null) headers.push("gw-aig-error-origin", marks.errorOrigin);
  return headers;
}

function connectionNames(rawHeaders: readonly string[]): ReadonlySet<string> | null {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== "connection") continue;
    const value = rawHeaders[i + 1]?.toLowerCase() ?? "";
    if (value !== "keep-alive" && value !== "close") {
      return new Set(value.split(",").map((name) => name.trim()));
    }
  }
  return null;
}
