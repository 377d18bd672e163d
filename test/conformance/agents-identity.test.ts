/** Who the caller is, as `agents.authorize` says, reaches the agent; pages of other origins get what `agents.cors` allows. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const MODULE = join(import.meta.dirname, "../fixtures/identity-agents.ts");
const APP = "https://app.example.com";

/** Callers name themselves by a token of their own: `user-<id>`, `reader-<id>`. */
function authorize(request: Request) {
  const text =
    request.headers.get("authorization")?.replace("Bearer ", "") ??
    new URL(request.url).searchParams.get("token");
  const [, kind, id] = /^(user|reader)-(\w+)$/.exec(text ?? "") ?? [];
  if (id === undefined) return false;
  return {
    level: kind === "user" ? ("edit" as const) : ("read" as const),
    props: { id },
    headers: { "x-user": id },
  };
}

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [MODULE], authorize, cors: [APP] } } });
});
afterAll(() => server.stop());

const get = (path: string, headers: Record<string, string>) =>
  fetch(`${server.url}/agents/${path}`, { headers });

describe("identity", () => {
  it("reaches onRequest, admitRequest and onConnect, with the credential of the caller", async () => {
    const bearer = { authorization: "Bearer user-ann" };
    expect(await (await get("personal/a", bearer)).json()).toEqual({
      props: { id: "ann" },
      authorization: "Bearer user-ann",
      token: null,
      user: "ann",
    });
    expect((await get("personal/a?token=user-banned", {})).status).toBe(403);
    const client = await new RawClient(`${server.url}/agents/personal/a?token=user-bob`, {
      token: null,
    }).opened();
    expect(await client.next((frame) => "props" in frame)).toEqual({
      props: { id: "bob" },
      authorization: null,
      token: "user-bob",
      user: "bob",
      uri: "/agents/personal/a",
    });
    expect((await client.call("whoAmI")).result).toEqual([{ user: "bob" }, null]);
    client.close();
  });

  it("is known to methods that are called over HTTP", async () => {
    const { body } = await server.api("POST", "/agents/personal/a/rpc/whoAmI", [], "user-cleo");
    expect(body.result).toEqual([null, "cleo"]);
  });

  it("cannot be chosen by the caller: the header of the hook replaces the caller's", async () => {
    const answer = await get("personal/a", { authorization: "Bearer user-ann", "x-user": "root" });
    expect(((await answer.json()) as { user: string }).user).toBe("ann");
  });

  it("is absent for callers with a token of ours, which agents do not see, in whatever place it is", async () => {
    const nothing = { props: null, authorization: null, token: null, user: null };
    expect(await (await get("personal/a", { authorization: `Bearer ${ROOT_TOKEN}` })).json()).toEqual(
      nothing,
    );
    for (const query of [
      `token=${ROOT_TOKEN}`,
      `%74oken=${ROOT_TOKEN}`,
      `x=1&tok%65n=${ROOT_TOKEN}&token=`,
    ]) {
      expect(await (await get(`personal/a?${query}`, {})).json()).toEqual(nothing);
    }
    const both = await get(`personal/a?token=${ROOT_TOKEN}`, { authorization: "Bearer user-ann" });
    expect(await both.json()).toMatchObject({ props: { id: "ann" }, token: null });
  });

  it.each([{ level: "owner" }, { props: { id: "x" } }, null, "yes", 1])(
    "an answer of the hook that names no level refuses: %j",
    async (answer) => {
      const strict = await startTestServer({
        file: { agents: { modules: [MODULE], authorize: () => answer as never } },
      });
      expect((await strict.api("GET", "/agents/personal/x", undefined, null)).status).toBe(401);
      await strict.stop();
    },
  );
});

describe("CORS", () => {
  const preflight = (origin: string, at = server) =>
    fetch(`${at.url}/agents/personal/a`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type",
      },
    });
  const cors = (response: Response) =>
    Object.fromEntries([...response.headers].filter(([name]) => name.startsWith("access-control-")));

  it("a preflight of a listed origin is answered without a credential", async () => {
    const answer = await preflight(APP);
    expect(answer.status).toBe(204);
    expect(cors(answer)).toEqual({
      "access-control-allow-origin": APP,
      "access-control-allow-credentials": "true",
      "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
      "access-control-allow-headers": "authorization, content-type",
      "access-control-max-age": "7200",
    });
    expect(answer.headers.get("vary")).toBe("Origin");
  });

  it("answers and errors of a listed origin can be read; the agent's own Vary is kept", async () => {
    const allowed = { "access-control-allow-origin": APP, "access-control-allow-credentials": "true" };
    const answer = await get("personal/a", { origin: APP, authorization: "Bearer user-ann" });
    expect([answer.status, cors(answer), answer.headers.get("vary")]).toEqual([
      200,
      allowed,
      "Origin, accept",
    ]);
    const refused = await get("personal/a", { origin: APP });
    expect([refused.status, cors(refused)]).toEqual([401, allowed]);
    const missing = await get("nobody/a", { origin: APP, authorization: "Bearer user-ann" });
    expect([missing.status, cors(missing)]).toEqual([404, allowed]);
  });

  it.each([
    "null",
    "https://evil.example",
    "https://app.example.com.evil.example",
    "http://app.example.com",
    `${APP}:8443`,
    `${APP}/`,
  ])(
    "the origin %s gets no header, and its preflight is an ordinary request without a credential",
    async (origin) => {
      const answer = await get("personal/a", { origin, authorization: "Bearer user-ann" });
      expect([answer.status, cors(answer)]).toEqual([200, {}]);
      const refused = await preflight(origin);
      expect([refused.status, cors(refused)]).toEqual([401, {}]);
    },
  );

  it("true allows every origin, never with credentials, and needs a token as before", async () => {
    const open = await startTestServer({ file: { agents: { modules: [MODULE], cors: true } } });
    for (const origin of ["https://anywhere.example", "null"]) {
      expect(cors(await preflight(origin, open))).toMatchObject({ "access-control-allow-origin": "*" });
      const answer = await fetch(`${open.url}/agents/personal/a`, { headers: { origin } });
      expect([answer.status, cors(answer)]).toEqual([401, { "access-control-allow-origin": "*" }]);
    }
    const odd = await fetch(`${open.url}/agents/personal/a`, {
      method: "OPTIONS",
      headers: {
        origin: "null",
        "access-control-request-method": "POST",
        "access-control-request-headers": "a b;c",
      },
    });
    expect(cors(odd)["access-control-allow-headers"]).toBeUndefined();
    await open.stop();
  });

  it("a session of the dashboard is of no use to a listed origin", async () => {
    const login = await fetch(`${server.url}/dashboard/session`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: server.url },
      body: JSON.stringify({ token: ROOT_TOKEN }),
    });
    const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    expect(cookie).not.toBe("");
    expect(
      (await get("personal/a", { cookie, origin: server.url, "sec-fetch-site": "same-origin" })).status,
    ).toBe(200);
    expect((await get("personal/a", { cookie, origin: APP, "sec-fetch-site": "cross-site" })).status).toBe(
      403,
    );
  });

  it("without the setting there is neither a header nor an answer to a preflight", async () => {
    const closed = await startTestServer({ file: { agents: { modules: [MODULE] } } });
    const answer = await preflight(APP, closed);
    expect([answer.status, cors(answer)]).toEqual([401, {}]);
    await closed.stop();
  });

  it.each(["*", "null", "https://app.example.com/", "app.example.com", "https://user@app.example.com"])(
    "%s is no origin that can be listed",
    async (origin) => {
      await expect(startTestServer({ file: { agents: { cors: [origin] } } })).rejects.toThrow("agents.cors");
    },
  );
});
