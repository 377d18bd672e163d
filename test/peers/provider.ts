/**
 * A provider simulated by a real server on loopback: it records requests and answers in a dialect or as the test
 * says.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

export interface ProviderRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export type ProviderAnswer = (
  request: ProviderRequest,
  response: ServerResponse,
  raw: IncomingMessage,
) => void | Promise<void>;

export interface ProviderPeer {
  readonly url: string;
  readonly port: number;
  /** Complete requests in the order in which they ended. */
  readonly requests: ProviderRequest[];
  /** Connections accepted so far. */
  connections(): number;
  /** Replaces the response to the next requests. */
  answer: ProviderAnswer;
  close(): Promise<void>;
}

/** `idleMs`: time after which an idle connection is closed. */
export async function startProvider(answer: ProviderAnswer, idleMs = 5000): Promise<ProviderPeer> {
  const requests: ProviderRequest[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => undefined);
    request.on("end", () => {
      const seen: ProviderRequest = {
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      requests.push(seen);
      void peer.answer(seen, response, request);
    });
  });
  server.keepAliveTimeout = idleMs;
  server.on("connection", () => (connections += 1));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const peer: ProviderPeer = {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    connections: () => connections,
    answer,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return peer;
}

export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

/** Server-sent events, one write each, with a turn of the event loop between them. */
export async function sendEvents(response: ServerResponse, events: readonly string[]): Promise<void> {
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  for (const event of events) {
    response.write(event);
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}
