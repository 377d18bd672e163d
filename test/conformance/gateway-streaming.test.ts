/** Decisions, section 4 (streaming): immediate relay, back-pressure and aborts in both directions, stalls. */
import { once } from "node:events";
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from "node:http";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, CHAT, post, readLogs, send } from "../support/gateway.ts";
import { patiently } from "../support/patience.ts";
import { startServerProcess } from "../support/server-process.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const STALL_MS = 1500;

let provider: ProviderPeer;
let server: TestServer;
/** With limits for silence. The other tests do without them: a pause of the machine is no stall of the provider. */
let impatient: TestServer;
beforeAll(async () => {
  provider = await startProvider((_, response) => void response.end());
  const providers = { openai: { baseUrl: provider.url } };
  server = await startTestServer({ file: { providers } });
  impatient = await startTestServer({
    file: { providers, gateway: { stallTimeoutMs: STALL_MS, firstByteTimeoutMs: STALL_MS } },
  });
});
afterAll(async () => {
  await server.stop();
  await impatient.stop();
  await provider.close();
});

function sendCall(
  path = "openai/chat/completions",
  at: { url: string } = server,
  headers: Record<string, string> = {},
): ClientRequest {
  const request = httpRequest(`${at.url}${callPath(path)}`, {
    method: "POST",
    agent: false,
    headers: { "content-type": "application/json", ...headers },
  });
  request.on("error", () => undefined);
  request.end(CHAT);
  return request;
}

/** Starts a call and resolves when the response's head has arrived. */
async function open(path?: string, at?: { url: string }): Promise<IncomingMessage> {
  const [response] = (await once(sendCall(path, at), "response")) as [IncomingMessage];
  return response;
}

it("each event is relayed before the provider sends the next", async () => {
  const { promise, resolve } = Promise.withResolvers<ServerResponse>();
  provider.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    resolve(response);
  };
  // The head arrives before the provider has sent a byte of the body.
  const response = await open();
  const upstream = await promise;
  for (const text of ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"]) {
    upstream.write(text);
    const [chunk] = (await once(response, "data")) as [Buffer];
    expect(chunk.toString()).toBe(text);
  }
  upstream.end();
  await once(response, "end");
  expect(response.complete).toBe(true);
});

it("the upstream call is cancelled when the client disconnects, before and during a stream", async () => {
  for (const sendsHead of [true, false]) {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const { promise: reached, resolve: onReached } = Promise.withResolvers<void>();
    provider.answer = (_, response) => {
      response.on("close", () => resolve());
      if (sendsHead) response.write("data: 1\n\n");
      onReached();
    };
    const request = sendCall();
    if (sendsHead) {
      const [response] = (await once(request, "response")) as [IncomingMessage];
      response.on("error", () => undefined);
      await once(response, "data");
    } else {
      await reached;
    }
    request.destroy();
    // The provider never ends this response; only a cancellation closes it.
    await closed;
  }
});

describe("a resumable stream", () => {
  const EVENTS = ["data: 1\n\n", ": ping\n\n", "data: 3\n\n", "data: 4\n\n"];

  /** Begins a stream, reads its first event, and leaves. Returns its id and the provider's side of it. */
  async function beginAndLeave(headers: Record<string, string> = {}) {
    const { promise, resolve } = Promise.withResolvers<ServerResponse>();
    provider.answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(EVENTS[0]);
      resolve(response);
    };
    const request = sendCall(undefined, server, { "gw-aig-resumable": "true", ...headers });
    const [response] = (await once(request, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    await once(response, "data");
    request.destroy();
    return { id: String(response.headers["gw-aig-run-id"]), upstream: await promise };
  }
  const resume = (id: string, query: string, headers: Record<string, string> = {}) =>
    send(server, "GET", callPath(`run/${id}/resume${query}`), { headers });

  it("goes on without its client, and is read from any event on, while it runs and after its end", async () => {
    const { id, upstream } = await beginAndLeave();
    const running = resume(id, "?from=1");
    for (const event of EVENTS.slice(1)) upstream.write(event);
    upstream.end();
    const { status, headers, body } = await running;
    expect([status, headers["gw-aig-run-id"], body]).toEqual([200, id, EVENTS.slice(1).join("")]);
    for (let from = 0; from <= EVENTS.length; from++) {
      expect((await resume(id, `?from=${from}`)).body).toBe(EVENTS.slice(from).join(""));
    }
    expect((await resume(id, "?from=99")).body).toBe("");
    expect((await readLogs(server))[0]).toMatchObject({ status_code: 200, success: true });
  });

  it("that breaks off breaks off for those who read it again, too", async () => {
    const { id, upstream } = await beginAndLeave();
    upstream.destroy();
    await expect(resume(id, "?from=0")).rejects.toThrow();
  });

  it("is that of its token, and is ended by a DELETE", async () => {
    const token = await server.token(["gateway.run"]);
    const other = await server.token(["gateway.run"]);
    const own = { "gw-aig-authorization": `Bearer ${token}` };
    const { id, upstream } = await beginAndLeave(own);
    const foreign = { "gw-aig-authorization": `Bearer ${other}` };
    for (const headers of [foreign, {}]) expect((await resume(id, "", headers)).status).toBe(404);
    expect((await resume(id, "?from=-1", own)).status).toBe(400);
    const ended = once(upstream, "close");
    expect((await send(server, "DELETE", callPath(`run/${id}`), { headers: own })).status).toBe(204);
    await ended;
    expect((await resume(id, "", own)).status).toBe(404);
  });

  it("is only a stream: other responses end with their connection, and have no run", async () => {
    provider.answer = (_, response) => sendJson(response, 200, { id: "c", choices: [] });
    const headers = { "gw-aig-resumable": "true" };
    const plain = await post(server, "openai/chat/completions", { headers });
    expect([plain.status, plain.headers["gw-aig-run-id"], JSON.parse(plain.body)]).toEqual([
      200,
      undefined,
      { id: "c", choices: [] },
    ]);
    provider.answer = (_, response) => sendJson(response, 429, { error: { message: "slow down" } });
    expect((await post(server, "openai/chat/completions", { headers })).status).toBe(429);
    expect((await post(server, "nowhere/chat/completions", { headers })).status).toBe(400);
    const closed = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    provider.answer = (_, response) => {
      response.on("close", () => closed.resolve());
      reached.resolve();
    };
    const request = sendCall(undefined, server, headers);
    await reached.promise;
    request.destroy();
    await closed.promise;
  });
});

it("the client detects that the provider broke off the response", async () => {
  for (const headers of [{ "content-length": "1000" }, { "content-type": "text/event-stream" }]) {
    provider.answer = (_, response) => {
      response.writeHead(200, headers);
      response.write("partial", () => response.destroy());
    };
    const response = await open();
    const [error] = (await once(response.resume(), "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
    expect(response.complete).toBe(false);
  }
});

it("a provider that does not answer is timed out with 504 and code 2004", async () => {
  provider.answer = () => undefined;
  const answer = await post(impatient, "openai/chat/completions");
  expect(answer.status).toBe(504);
  expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2004, error: [{ code: 2004 }] });
  expect(answer.headers["gw-aig-error-origin"]).toBe("gateway");
});

it("a response that stalls is cut off", async () => {
  provider.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
  };
  const response = await open(undefined, impatient);
  const [error] = (await once(response.resume(), "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNRESET");
});

it("a provider that cannot be reached or hangs up is answered 502 with code 2005", async () => {
  provider.answer = (_, response) => void response.destroy();
  const answer = await post(server, "openai/chat/completions");
  expect(answer.status).toBe(502);
  expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2005 });
  const nowhere = await startTestServer({
    file: { providers: { openai: { baseUrl: "http://127.0.0.1:1" } } },
  });
  try {
    expect((await post(nowhere, "openai/chat/completions")).status).toBe(502);
  } finally {
    await nowhere.stop();
  }
});

it("reading from the provider stops while the client does not read, and a client that never reads is disconnected", async () => {
  let written = 0;
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  const piece = Buffer.alloc(256 * 1024, 120);
  provider.answer = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.on("close", () => resolve());
    const pump = () => {
      while (!response.destroyed && response.write(piece)) written += piece.length;
      written += piece.length;
      response.once("drain", pump);
    };
    pump();
  };
  const socket = connect(Number(new URL(impatient.url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  socket.pause();
  socket.write(
    `POST ${callPath("openai/chat/completions")} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${CHAT.length}\r\n\r\n${CHAT}`,
  );
  await stopped;
  socket.destroy();
  // The capacity of the socket buffers, far below what an unbounded relay would have read within the stall time.
  expect(written).toBeLessThan(64 * 1024 * 1024);
});

it("the client's upload is not read faster than the provider accepts it", async () => {
  let paused: IncomingMessage | undefined;
  const { promise: seen, resolve } = Promise.withResolvers<void>();
  const slow = await startSlowReader((request) => {
    paused = request;
    resolve();
  });
  const upload = await startTestServer({
    file: {
      providers: { openai: { baseUrl: slow.url } },
      gateway: { replayBodyBytes: 64 * 1024 },
      listener: { gracePeriodMs: 0 },
    },
  });
  try {
    const request = httpRequest(`${upload.url}${callPath("openai/files")}`, { method: "POST", agent: false });
    request.on("error", () => undefined);
    const piece = Buffer.alloc(256 * 1024);
    let sent = 0;
    let isBlocked = false;
    const pump = () => {
      isBlocked = false;
      while (request.write(piece) && sent < 512 * 1024 * 1024) sent += piece.length;
      sent += piece.length;
      isBlocked = true;
      request.once("drain", pump);
    };
    pump();
    await seen;
    // The upload is at rest: nothing was drained between two checks.
    let before = -1;
    await expect
      .poll(
        () => {
          const isSame = before === sent && isBlocked;
          before = sent;
          return isSame;
        },
        { interval: 200 },
      )
      .toBe(true);
    expect(sent).toBeLessThan(128 * 1024 * 1024);
    expect(paused?.complete).toBe(false);
    request.destroy();
  } finally {
    await upload.stop();
    await slow.close();
  }
});

it("300 MB are relayed without being kept", async () => {
  const size = 300 * 1024 * 1024;
  const piece = Buffer.alloc(64 * 1024, 97);
  provider.answer = async (_, response) => {
    response.writeHead(200, { "content-type": "application/octet-stream", "content-length": String(size) });
    for (let sent = 0; sent < size; sent += piece.length) {
      if (!response.write(piece)) await once(response, "drain");
    }
    response.end();
  };
  const folder = await mkdtemp(join(tmpdir(), "signalbox-test-"));
  await writeFile(
    join(folder, "signalbox.config.json"),
    JSON.stringify(patiently({ providers: { openai: { baseUrl: provider.url } } })),
  );
  const child = await startServerProcess([], { cwd: folder });
  try {
    const response = await open("openai/files/content", child);
    const before = await readResidentMegabytes(child.pid);
    let received = 0;
    let peak = 0;
    let checkedAt = 0;
    for await (const chunk of response) {
      received += (chunk as Buffer).length;
      if (received - checkedAt < 8 * 1024 * 1024) continue;
      checkedAt = received;
      peak = Math.max(peak, (await readResidentMegabytes(child.pid)) - before);
    }
    expect(received).toBe(size);
    // The log keeps 10 MiB of a body; the rest are buffers that wait for garbage collection and do not grow with the
    // body.
    expect(peak).toBeLessThan(150);
  } finally {
    await child.end("SIGTERM");
    await rm(folder, { recursive: true, force: true });
  }
});

/** Resident memory of the process; 0 without /proc, and the test then only counts bytes. */
async function readResidentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

async function startSlowReader(onRequest: (request: IncomingMessage) => void) {
  const slow = createServer((request) => {
    request.pause();
    onRequest(request);
  });
  slow.listen(0, "127.0.0.1");
  await once(slow, "listening");
  return {
    url: `http://127.0.0.1:${(slow.address() as { port: number }).port}`,
    async close() {
      slow.closeAllConnections();
      slow.close();
      await once(slow, "close");
    },
  };
}
