/** Pipelined requests: a client sends requests on one connection without waiting for responses. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { MAX_UNANSWERED } from "../../packages/signalbox/src/engines/http-server/tracking.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { readResponses } from "./support/read-responses.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const request = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;
const open = () => connect(Number(new URL(server.url).port), "127.0.0.1");

it("pipelined requests are answered in order, up to the limit of pending requests", async () => {
  const socket = open();
  let received = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => (received += chunk));
  for (let round = 0; round < 3; round++) {
    const paths = Array.from({ length: MAX_UNANSWERED }, (_, i) => (i % 2 === 0 ? "/healthz" : `/nope-${i}`));
    received = "";
    socket.write(paths.map((path) => request(path)).join(""));
    const statuses = paths.map((path) => (path === "/healthz" ? 200 : 404));
    const methods = paths.map(() => "GET");
    await expect
      .poll(() => readResponses(received, methods).responses.map(({ status }) => status))
      .toEqual(statuses);
  }
  socket.destroy();
});

it.each(["/healthz", "/nope", "/v1/default/default/echo/models", "/dashboard/"])(
  "the connection of a client that does not read responses (%s) is closed, and no other",
  async (path) => {
    const socket = open();
    const cut = new Promise<void>((resolve) => {
      socket.on("error", () => undefined);
      socket.once("close", () => resolve());
    });
    await once(socket, "connect");
    socket.pause();
    const flood = Buffer.from(request(path).repeat(500));
    let isOpen = true;
    void cut.then(() => (isOpen = false));
    // More than both ends of a connection buffer together.
    for (let i = 0; i < 2000 && isOpen; i++) {
      if (!socket.write(flood)) await Promise.race([once(socket, "drain"), cut]).catch(() => undefined);
    }
    expect(isOpen).toBe(false);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  },
);
