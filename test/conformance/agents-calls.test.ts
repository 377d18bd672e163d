/** Callable methods, turns and transactions over HTTP: interface sections 2.4 and 4.2, decisions section 5. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { runCommand } from "../support/run-cli.ts";
import { RawSocket, rawWebSocket } from "../support/raw-socket.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
/** With a time limit, which a pause of the machine would make other turns exceed. */
let limited: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS] } } });
  limited = await startTestServer({ file: { agents: { modules: [TEST_AGENTS], turnTimeoutMs: 1000 } } });
});
afterAll(async () => {
  await server.stop();
  await limited.stop();
});

const call = (path: string, args?: unknown, token?: string | null, at = server) =>
  at.api("POST", `/agents/${path}`, args, token);
const callLimited = (path: string, args: unknown) => call(path, args, undefined, limited);

const get = (path: string) => server.api("GET", `/agents/${path}`);

describe("`agents call`", () => {
  const run = (...args: string[]) => runCommand(server, ["agents", "call", "counter", "cli", ...args]);

  it("prints the pieces of a streaming method, a line for each, and then its result", async () => {
    expect(await run("stream", "3")).toMatchObject({ code: 0, out: '0\n1\n2\n"done"\n', err: "" });
  });

  it("fails when a stream breaks off, after the pieces that came", async () => {
    const { code, out, err } = await run("brokenStream");
    expect({ code, out }).toEqual({ code: 1, out: '"first"\n' });
    expect(err).toContain("broke off");
  });

  it("names the method that is meant", async () => {
    const { code, err } = await run("incremnt");
    expect(code).toBe(1);
    expect(err).toContain('Method incremnt does not exist: no method "incremnt", did you mean "increment"?');
    expect((await run("notCallable")).err).toContain("Method notCallable is not callable");
  });
});

describe("callable methods over HTTP", () => {
  it("a callable method runs and its result is returned", async () => {
    expect((await call("counter/a/rpc/increment", [2])).body).toMatchObject({ success: true, result: 2 });
    expect((await call("counter/a/rpc/increment")).body.result).toBe(3);
    expect((await call("counter/a/rpc/read", [])).body.result).toEqual({ count: 3, hits: 2 });
  });

  it("a class can list its callable methods by name instead of decorating them", async () => {
    expect((await call("plain-agent/a/rpc/hello", ["you"])).body.result).toBe("hello you");
  });

  it.each(["notCallable"])("the method %s, which is not marked as callable, is refused", async (method) => {
    const answer = await call(`counter/a/rpc/${method}`, []);
    expect(answer.status).toBe(403);
    expect(answer.body.errors).toEqual([{ code: 3005, message: `Method ${method} is not callable` }]);
  });

  it.each([
    "nope",
    "setState",
    "constructor",
    "toString",
    "__proto__",
    "sql",
    "hasOwnProperty",
    "starts",
    "#host",
  ])("the name %s is an unknown method", async (method) => {
    const answer = await call(`counter/a/rpc/${encodeURIComponent(method)}`, []);
    expect(answer.status).toBe(404);
    expect(answer.body.errors[0].code).toBe(3004);
  });

  it("the response to a failed call has the error's message and not its stack", async () => {
    const answer = await call("counter/b/rpc/syncFail", []);
    expect(answer.status).toBe(500);
    expect(answer.body.errors).toEqual([{ code: 3007, message: "failed at once" }]);
    expect(JSON.stringify(answer.body)).not.toContain("test-agents");
  });

  it("the arguments must be a JSON array", async () => {
    expect((await call("counter/a/rpc/increment", { by: 1 })).status).toBe(400);
    expect((await call("counter/a/rpc/increment", "{")).status).toBe(400);
    expect((await server.api("GET", "/agents/counter/a/rpc/increment")).status).toBe(405);
  });

  it("a streaming method is refused over HTTP", async () => {
    expect((await call("counter/a/rpc/stream", [3])).status).toBe(400);
  });
});

describe("a turn", () => {
  it("a turn that throws synchronously leaves no trace", async () => {
    await call("counter/tx1/rpc/increment", []);
    await call("counter/tx1/rpc/syncFail", []);
    expect((await call("counter/tx1/rpc/read", [])).body.result).toEqual({ count: 1, hits: 1 });
  });

  it("a turn that throws after awaiting resolved values leaves no trace", async () => {
    await call("counter/tx2/rpc/incrementThenFail", []);
    expect((await call("counter/tx2/rpc/read", [])).body.result).toEqual({ count: 0, hits: 0 });
  });

  it("a turn that throws after real I/O keeps the writes made before the I/O", async () => {
    await call("counter/tx3/rpc/incrementWaitFail", []);
    expect((await call("counter/tx3/rpc/read", [])).body.result).toEqual({ count: 1, hits: 1 });
  });

  it("turns of one instance do not interleave while one of them waits", async () => {
    await Promise.all([1, 2, 3].map((i) => call("counter/order/rpc/slow", [10, String(i)])));
    const notes = (await call("counter/order/rpc/notes", [])).body.result as string[];
    // Which of the three connections is read first is chance.
    const turns = [0, 2, 4].map((at) => notes.slice(at, at + 2).join(", "));
    expect(turns.toSorted()).toEqual(["begin 1, end 1", "begin 2, end 2", "begin 3, end 3"]);
    expect(notes).toHaveLength(6);
  });

  it("a turn that exceeds its time limit is aborted, and the next turn runs", async () => {
    const never = callLimited("counter/cut/rpc/never", []);
    const next = callLimited("counter/cut/rpc/increment", []);
    expect((await never).status).toBe(504);
    expect((await next).body.result).toBe(1);
  });

  it("an aborted turn cannot write", async () => {
    expect((await callLimited("counter/late/rpc/slow", [1500, "x"])).status).toBe(504);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect((await callLimited("counter/late/rpc/notes", [])).body.result).toEqual(["begin x"]);
  });

  it("an agent can call every public method of another agent", async () => {
    expect((await call("plain-agent/caller/rpc/ask", [`asked-${Date.now()}`])).body.result).toEqual({
      count: 5,
      hidden: "secret",
    });
  });

  it("an agent that waits for itself gets an error", async () => {
    const answer = await call("plain-agent/caller/rpc/loop", []);
    expect(answer.status).toBe(409);
    expect(answer.body.errors[0].code).toBe(3009);
  });
});

describe("requests to an instance", () => {
  it("a request reaches onRequest with method, path and query, without the credential", async () => {
    const token = await server.token(["agents.edit"]);
    const response = await fetch(`${server.url}/agents/counter/r1/some/path?x=1&token=${token}&y=2`);
    expect(await response.json()).toEqual({
      method: "GET",
      path: "/agents/counter/r1/some/path",
      search: "?x=1&y=2",
      authorization: null,
      name: "r1",
    });
  });

  it("request and response bodies are passed on", async () => {
    const response = await fetch(
      `${server.url}/agents/counter/r1/echo?token=${await server.token(["agents.edit"])}`,
      {
        method: "POST",
        body: "some text",
      },
    );
    expect(await response.text()).toBe("echo some text");
  });

  it("an exception in onRequest is answered 500 without detail", async () => {
    const answer = await get("counter/r1/fail");
    expect(answer.status).toBe(500);
    expect(JSON.stringify(answer.body)).not.toContain("secret detail");
  });

  it("an unknown agent or a missing instance name is 404", async () => {
    expect((await get("nobody/x")).body.errors[0].code).toBe(3001);
    expect((await get("counter")).status).toBe(404);
    expect((await get("counter/")).status).toBe(404);
  });
});

describe("access", () => {
  it("a call without a token is refused", async () => {
    const answer = await call("counter/a/rpc/read", [], null);
    expect(answer.status).toBe(401);
    expect(answer.body.errors[0].code).toBe(10000);
  });

  it("agents.read allows reads only", async () => {
    const token = await server.token(["agents.read"]);
    expect((await call("counter/a/rpc/read", [], token)).status).toBe(403);
    expect((await server.api("GET", "/agents/counter/a/x", undefined, token)).status).toBe(200);
    expect((await server.api("POST", "/agents/counter/a/x", {}, token)).status).toBe(403);
  });

  it("other permissions give no access", async () => {
    const tags = await server.token(["tags.edit"]);
    expect((await call("counter/a/rpc/read", [], tags)).status).toBe(403);
  });

  it("the configuration can make agents public", async () => {
    const open = await startTestServer({ file: { agents: { modules: [TEST_AGENTS], access: "public" } } });
    expect((await open.api("POST", "/agents/counter/a/rpc/increment", [], null)).body.result).toBe(1);
    await open.stop();
  });

  it("an authorize hook can decide", async () => {
    const hooked = await startTestServer({
      file: {
        agents: {
          modules: [TEST_AGENTS],
          authorize: (request) =>
            request.headers.get("x-who") === "friend"
              ? "edit"
              : request.headers.get("x-who") === "guest" && "read",
        },
      },
    });
    const as = (who: string, method = "POST") =>
      fetch(`${hooked.url}/agents/counter/a/increment`, { method, headers: { "x-who": who } });
    expect((await as("friend")).status).toBe(200);
    expect((await as("guest")).status).toBe(403);
    expect((await as("guest", "GET")).status).toBe(200);
    expect((await as("stranger")).status).toBe(401);
    await hooked.stop();
  });

  it("an authorize hook sees the path of the instance that is reached, or the request is refused", async () => {
    const seen: string[] = [];
    const hooked = await startTestServer({
      file: {
        agents: {
          modules: [TEST_AGENTS],
          authorize: (request) => {
            seen.push(new URL(request.url).pathname);
            return true;
          },
        },
      },
    });
    const post = async (target: string) => {
      const raw = new RawSocket(hooked.url);
      raw.write(`POST ${target} HTTP/1.1\r\nhost: box\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
      await raw.closed();
      return raw.received.toString("latin1", 9, 12);
    };
    for (const rest of ["../mine/rpc/increment", "%2e%2e/mine/increment", "..\\mine", "rpc/increment#x"])
      expect([rest, await post(`/agents/counter/victim/${rest}`)]).toEqual([rest, "400"]);
    const path = "/agents/counter/mine/rpc/increment";
    expect(await post(path)).toBe("200");
    expect(await post(`http://box${path}`)).toBe("200");
    expect(seen).toEqual([path, path]);
    const socket = await rawWebSocket(hooked.url, "/agents/counter/victim/../mine");
    await socket.closed();
    // The close frame with 1008.
    expect(socket.received.includes(Buffer.from([0x03, 0xf0]))).toBe(true);
    expect(seen).toHaveLength(2);
    await hooked.stop();
  });
});
