/** Streams of a management reply. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { afterEach, expect, it } from "vitest";
import type { Authenticator } from "../accounts/index.ts";
import { ROOT } from "../accounts/principal.ts";
import { sendReply } from "./send-reply.ts";

const servers: { close(): unknown; closeAllConnections(): void }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const authenticator = { watch: () => () => undefined } as unknown as Authenticator;

/** The response of a server that replies with the stream, and with 503 if the reply could not begin. */
async function request(lines: AsyncIterable<string>): Promise<Response> {
  const server = createServer((_, response: ServerResponse) => {
    const reply = { raw: { contentType: "text/csv", body: Readable.from(lines) } };
    const sent = sendReply(response, reply, { isHead: false, principal: ROOT }, authenticator);
    Promise.resolve(sent).catch(() => {
      if (!response.headersSent) response.writeHead(503).end();
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

async function* failingAfter(...lines: string[]): AsyncGenerator<string> {
  yield* lines;
  throw new Error("the database is away");
}

it("a stream whose first read fails has sent nothing, so that the error is the answer", async () => {
  expect((await request(failingAfter())).status).toBe(503);
});

it("a stream that fails later breaks off, so that it does not look complete", async () => {
  const response = await request(failingAfter("a", "b"));
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow();
});

it("a stream without content is a complete answer", async () => {
  const response = await request((async function* () {})());
  expect([response.status, await response.text()]).toEqual([200, ""]);
});
