/** Callable methods, turns and transactions, over HTTP: interface sections 2.4 and 4.2, decisions section 5. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS], turnTimeoutMs: 400 } } });
});
afterAll(() => server.stop());

const call = (path: string, args?: unknown, token?: string | null) =>
  server.api("POST", `/agents/${path}`, args, token);

const get = (path: string) => server.api("GET", `/agents/${path}`);

describe("callable methods over HTTP", () => {
  it("run and return their result", async () => {
    expect((await call("counter/a/rpc/increment", [2])).body).toMatchObject({ success: true, result: 2 });
    expect((await call("counter/a/rpc/increment")).body.result).toBe(3);
    expect((await call("counter/a/rpc/read", [])).body.result).toEqual({ count: 3, hits: 2 });
  });

  it("can be listed by name instead of being decorated", async () => {
    expect((await call("plain-agent/a/rpc/hello", ["you"])).body.result).toBe("hello you");
  });

  it.each(["notCallable"])("refuse %s, which is not marked", async (method) => {
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
  ])("do not know %s", async (method) => {
    const answer = await call(`counter/a/rpc/${encodeURIComponent(method)}`, []);
    expect(answer.status).toBe(404);
    expect(answer.body.errors[0].code).toBe(3004);
  });

  it("carry an error's message but not its stack", async () => {
    const answer = await call("counter/b/rpc/syncFail", []);
    expect(answer.status).toBe(500);
    expect(answer.body.errors).toEqual([{ code: 3007, message: "failed at once" }]);
    expect(JSON.stringify(answer.body)).not.toContain("test-agents");
  });

  it("take a JSON array and nothing else", async () => {
    expect((await call("counter/a/rpc/increment", { by: 1 })).status).toBe(400);
    expect((await call("counter/a/rpc/increment", "{")).status).toBe(400);
    expect((await server.api("GET", "/agents/counter/a/rpc/increment")).status).toBe(405);
  });

  it("refuse to stream over HTTP", async () => {
    expect((await call("counter/a/rpc/stream", [3])).status).toBe(400);
  });
});

describe("a turn", () => {
  it("that throws at once leaves no trace", async () => {
    await call("counter/tx1/rpc/increment", []);
    await call("counter/tx1/rpc/syncFail", []);
    expect((await call("counter/tx1/rpc/read", [])).body.result).toEqual({ count: 1, hits: 1 });
  });

  it("that throws after awaiting what was already there leaves no trace", async () => {
    await call("counter/tx2/rpc/incrementThenFail", []);
    expect((await call("counter/tx2/rpc/read", [])).body.result).toEqual({ count: 0, hits: 0 });
  });

  it("that throws after really waiting keeps what it wrote before the wait", async () => {
    await call("counter/tx3/rpc/incrementWaitFail", []);
    expect((await call("counter/tx3/rpc/read", [])).body.result).toEqual({ count: 1, hits: 1 });
  });

  it("does not interleave with another one while it waits", async () => {
    await Promise.all([1, 2, 3].map((i) => call("counter/order/rpc/slow", [10, String(i)])));
    expect((await call("counter/order/rpc/notes", [])).body.result).toEqual([
      "begin 1",
      "end 1",
      "begin 2",
      "end 2",
      "begin 3",
      "end 3",
    ]);
  });

  it("that never ends is cut by its limit, and the next one runs", async () => {
    const never = call("counter/cut/rpc/never", []);
    const next = call("counter/cut/rpc/increment", []);
    expect((await never).status).toBe(504);
    expect((await next).body.result).toBe(1);
  });

  it("that was cut cannot write any more", async () => {
    expect((await call("counter/late/rpc/slow", [700, "x"])).status).toBe(504);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await call("counter/late/rpc/notes", [])).body.result).toEqual(["begin x"]);
  });

  it("can call another agent, whose public methods it may all use", async () => {
    expect((await call("plain-agent/caller/rpc/ask", ["asked"])).body.result).toEqual({
      count: 5,
      hidden: "secret",
    });
  });

  it("cannot wait for itself", async () => {
    const answer = await call("plain-agent/caller/rpc/loop", []);
    expect(answer.status).toBe(409);
    expect(answer.body.errors[0].code).toBe(3009);
  });
});

describe("requests to an instance", () => {
  it("reach onRequest with method, path and query, but without our credential", async () => {
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

  it("carry a body both ways", async () => {
    const response = await fetch(
      `${server.url}/agents/counter/r1/echo?token=${await server.token(["agents.edit"])}`,
      {
        method: "POST",
        body: "some text",
      },
    );
    expect(await response.text()).toBe("echo some text");
  });

  it("that make the agent throw are answered 500 without detail", async () => {
    const answer = await get("counter/r1/fail");
    expect(answer.status).toBe(500);
    expect(JSON.stringify(answer.body)).not.toContain("secret detail");
  });

  it("to an unknown agent, or without an instance, are 404", async () => {
    expect((await get("nobody/x")).body.errors[0].code).toBe(3001);
    expect((await get("counter")).status).toBe(404);
    expect((await get("counter/")).status).toBe(404);
  });
});

describe("access", () => {
  it("needs a token", async () => {
    const answer = await call("counter/a/rpc/read", [], null);
    expect(answer.status).toBe(401);
    expect(answer.body.errors[0].code).toBe(10000);
  });

  it("with agents.read is reading only", async () => {
    const token = await server.token(["agents.read"]);
    expect((await call("counter/a/rpc/read", [], token)).status).toBe(403);
    expect((await server.api("GET", "/agents/counter/a/x", undefined, token)).status).toBe(200);
    expect((await server.api("POST", "/agents/counter/a/x", {}, token)).status).toBe(403);
  });

  it("is refused to other permissions", async () => {
    const tags = await server.token(["tags.edit"]);
    expect((await call("counter/a/rpc/read", [], tags)).status).toBe(403);
  });

  it("can be opened by configuration", async () => {
    const open = await startTestServer({ file: { agents: { modules: [TEST_AGENTS], access: "public" } } });
    expect((await open.api("POST", "/agents/counter/a/rpc/increment", [], null)).body.result).toBe(1);
    await open.stop();
  });

  it("can be decided by a hook", async () => {
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
});
