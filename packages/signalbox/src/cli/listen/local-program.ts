/**
 * Posts a delivery to the program on this machine: the sender's bytes and headers, signatures included, so that the vendor's own verifier accepts
 * them. Only headers of the connection between the sender and the server are left out.
 */
import type { OutgoingHttpHeaders } from "node:http";
import type { ListenedDelivery, ListenerResult } from "@signalbox/client";
import { request } from "../../engines/http-server/index.ts";

/** Less than the time after which the server sends an event again. */
const TIMEOUT_MS = 60_000;
/** Of the answer, for the server. */
const KEPT_BYTES = 4096;
const MAX_HEADER = 512;
const OF_THE_CONNECTION =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect|accept-encoding)$/;

export interface LocalTarget {
  readonly origin: URL;
  /** In place of the sender's path. */
  readonly path: string | undefined;
}

export async function postLocally(
  { origin, path }: LocalTarget,
  delivery: ListenedDelivery,
  signal: AbortSignal,
): Promise<ListenerResult> {
  const url = new URL(path ?? delivery.path, origin);
  const about = { event: delivery.event, attempt: delivery.attempt, url: url.href.slice(0, 2048) };
  const begun = performance.now();
  try {
    const answer = await send(url, delivery, signal);
    return { ...about, ...answer, error: null, duration_ms: since(begun) };
  } catch (error) {
    return { ...about, status: null, error: explain(error, origin), duration_ms: since(begun) };
  }
}

function send(url: URL, delivery: ListenedDelivery, signal: AbortSignal) {
  const body = Buffer.from(delivery.body, "base64");
  const headers: OutgoingHttpHeaders = { "content-length": body.length };
  for (const [name, value] of Object.entries(delivery.headers))
    if (!OF_THE_CONNECTION.test(name)) headers[name] = value;
  headers["signalbox-event-id"] = delivery.event;
  headers["signalbox-attempt"] = String(delivery.attempt);
  return new Promise<Pick<ListenerResult, "status" | "headers" | "body">>((resolve, reject) => {
    const sent = request(url, {
      method: "POST",
      headers,
      agent: false,
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    sent.once("error", reject);
    sent.once("response", (response) => {
      const kept: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        if (bytes < KEPT_BYTES) kept.push(chunk.subarray(0, KEPT_BYTES - bytes));
        bytes += chunk.length;
      });
      response.once("error", reject);
      response.once("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: shown(response.headers),
          body: Buffer.concat(kept).toString("base64"),
        }),
      );
    });
    sent.end(body);
  });
}

function shown(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value).slice(0, MAX_HEADER)]],
    ),
  );
}

function explain(error: unknown, origin: URL): string {
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  if (code === "ECONNREFUSED") return `nothing listens at ${origin.origin}`;
  if (code === "ECONNRESET") return `${origin.origin} closed the connection without an answer`;
  if (name === "TimeoutError") return `${origin.origin} did not answer within a minute`;
  return `${origin.origin}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 500);
}

function since(begun: number): number {
  return Math.round(performance.now() - begun);
}
