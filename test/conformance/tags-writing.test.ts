/** Tags: read, set, delete, permissions, zones, etags. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failure, getTags, outcome, putTags, TAGS } from "../support/tags.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.api("POST", "/accounts", { id: "other" });
});
afterAll(() => server.stop());

const put = (id: unknown, tags: unknown, type?: unknown) => putTags(server, id, tags, type);
const get = (id: string, type?: string) => getTags(server, id, type);

const TYPE = failure(1006, "Invalid resource type");
const DELETE = failure(1015, "Invalid delete payload");

async function conditional(
  method: string,
  id: string,
  etag: string,
  tags: object = { a: "new" },
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(server.url + TAGS, {
    method,
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "if-match": etag },
    body: JSON.stringify({ resource_type: "worker", resource_id: id, tags }),
  });
  return { status: response.status, body: response.status === 204 ? null : await response.json() };
}

/** The response to reading a resource that was never tagged, under a setting. */
async function readWith(missing: 404 | "200") {
  const other = await startTestServer({ file: { tags: { missing } } });
  const { status, body } = await other.api("GET", `${TAGS}?resource_type=worker&resource_id=never`);
  await other.stop();
  return { status, body };
}

describe("If-None-Match", () => {
  const send = (method: string, id: string, condition: string) =>
    fetch(`${server.url}${TAGS}${method === "GET" ? `?resource_type=worker&resource_id=${id}` : ""}`, {
      method,
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, "if-none-match": condition },
      ...(method === "GET"
        ? {}
        : { body: JSON.stringify({ resource_type: "worker", resource_id: id, tags: { by: condition } }) }),
    });

  it("* on PUT creates a resource and never replaces one, also if several try at once", async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => send("PUT", "only-new", "*")));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const refused = answers.filter(({ status }) => status === 412);
    expect(refused).toHaveLength(11);
    expect(await refused[0]?.json()).toEqual(failure(1016, "etag does not match"));
    await server.api("DELETE", TAGS, { resource_type: "worker", resource_id: "only-new" });
    expect((await send("PUT", "only-new", "*")).status).toBe(200);
    expect((await send("PATCH", "only-new", "*")).status).toBe(412);
  });

  it("with etags on a write refuses to change those tags", async () => {
    const { etag } = (await put("not-these", { a: "1" })).body.result;
    expect((await send("PUT", "not-these", `"x", "${etag}"`)).status).toBe(412);
    expect((await get("not-these")).body.result.tags).toEqual({ a: "1" });
    expect((await send("PUT", "not-these", '"x"')).status).toBe(200);
  });

  it("with the etag on GET is answered with 304 and no body", async () => {
    const { etag } = (await put("known-tags", { a: "1" })).body.result;
    for (const condition of [`"${etag}"`, etag, `W/"${etag}"`, `"x", "${etag}"`, "*"]) {
      const response = await send("GET", "known-tags", condition);
      expect([response.status, response.headers.get("etag"), await response.text()]).toEqual([
        304,
        `"${etag}"`,
        "",
      ]);
    }
    await put("known-tags", { a: "2" });
    expect((await send("GET", "known-tags", `"${etag}"`)).status).toBe(200);
    expect((await send("GET", "known-tags", '"unfinished')).status).toBe(400);
    expect((await send("GET", "never-tagged", "*")).status).toBe(500);
  });
});

describe("setting and reading", () => {
  it("a set returns the resource, and a read returns the same, under both prefixes", async () => {
    const set = await put("a", { env: "prod", team: "" });
    expect(set.status).toBe(200);
    expect(set.body).toEqual({
      success: true,
      errors: [],
      messages: [],
      result: {
        type: "worker",
        id: "a",
        name: "a",
        etag: expect.stringMatching(/^v1:[\w-]{22}$/),
        tags: { env: "prod", team: "" },
        tags_updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      },
    });
    expect(set.headers.get("etag")).toBe(`"${set.body.result.etag}"`);
    expect((await get("a")).body).toEqual(set.body);
    const prefixed = await server.api("GET", `/client/v4${TAGS}?resource_type=worker&resource_id=a`);
    expect(prefixed.body).toEqual(set.body);
  });

  it("a set replaces all tags", async () => {
    await put("b", { env: "prod", team: "core" });
    const { body } = await put("b", { team: "edge" });
    expect(body.result.tags).toEqual({ team: "edge" });
    expect((await get("b")).body.result.tags).toEqual({ team: "edge" });
  });

  it("an empty set is stored as an empty set and appears in no list", async () => {
    await put("emptied", { env: "x" });
    expect((await put("emptied", {})).body.result.tags).toEqual({});
    expect((await get("emptied")).body.result.tags).toEqual({});
    expect((await server.api("GET", `${TAGS}/resources?id=emptied`)).body.result).toEqual([]);
  });

  it("writing the same set again changes neither time nor history", async () => {
    const first = await put("same", { a: "1", b: "2" });
    const again = await put("same", { b: "2", a: "1" });
    expect(again.body).toEqual(first.body);
    const history = await server.api("GET", `${TAGS}/history?resource_type=worker&resource_id=same`);
    expect(history.body.result).toHaveLength(1);
  });

  it("every published resource type and signalbox's own are accepted, and types are separate", async () => {
    for (const type of [
      "account",
      "ai_gateway",
      "agent",
      "webhook_source",
      "api_token",
      "zone",
      "cws_policy",
    ]) {
      expect((await put(type === "account" ? "default" : "typed", { type }, type)).status).toBe(200);
    }
    expect((await get("typed", "zone")).body.result.tags).toEqual({ type: "zone" });
  });

  it("the parent id is part of a version's identity", async () => {
    const version = { resource_type: "worker_version", resource_id: "v" };
    for (const worker_id of ["w1", "w2"]) {
      const { body } = await server.api("PUT", TAGS, { ...version, worker_id, tags: { of: worker_id } });
      expect(body.result.worker_id).toBe(worker_id);
    }
    const { body } = await server.api(
      "GET",
      `${TAGS}?resource_type=worker_version&resource_id=v&worker_id=w1`,
    );
    expect(body.result.tags).toEqual({ of: "w1" });
  });

  it("a name for display and search is stored", async () => {
    await server.api("PUT", TAGS, {
      resource_type: "queue",
      resource_id: "q1",
      name: "Orders",
      tags: { a: "1" },
    });
    const { body } = await put("q1", { a: "2" }, "queue");
    expect(body.result.name).toBe("Orders");
  });
});

describe("a resource that was never tagged", () => {
  const message = "resource not found: type=worker id=never";

  it("a read is answered 500 with code 1004 and tells clients not to retry", async () => {
    const { status, body, headers } = await get("never");
    expect([status, body]).toEqual([500, failure(1004, message)]);
    expect(headers.get("x-should-retry")).toBe("false");
  });

  it("the configuration can change the response to 404 or an empty set", async () => {
    expect(await readWith(404)).toEqual({ status: 404, body: failure(1004, message) });
    expect(await readWith("200")).toMatchObject({
      status: 200,
      body: {
        success: true,
        result: { type: "worker", id: "never", name: "never", etag: "v1:RBNvo1WzZ4oRRq0W9-hkng", tags: {} },
      },
    });
    expect((await readWith("200")).body.result).not.toHaveProperty("tags_updated_at");
  });

  it("a deleted resource reads like one that was never tagged", async () => {
    await put("gone", { a: "1" });
    const { status, body } = await server.api("DELETE", TAGS, {
      resource_type: "worker",
      resource_id: "gone",
    });
    expect([status, body]).toEqual([204, null]);
    expect((await get("gone")).status).toBe(500);
  });
});

describe("deleting", () => {
  it("a deletion is idempotent and accepts the resource in the query", async () => {
    await put("d", { a: "1" });
    for (let i = 0; i < 2; i++) {
      const answer = await server.api("DELETE", `${TAGS}?resource_type=worker&resource_id=d`);
      expect(answer.status).toBe(204);
    }
    expect((await get("d")).status).toBe(500);
  });

  it("a deletion without a resource or with a malformed body is 1015", async () => {
    for (const body of [
      undefined,
      {},
      { resource_type: "worker" },
      { resource_id: "x" },
      "[]",
      "{",
      "null",
      "7",
    ]) {
      expect(await outcome(server.api("DELETE", TAGS, body))).toEqual([400, DELETE]);
    }
    expect(await outcome(server.api("DELETE", TAGS, { resource_type: 1, resource_id: "x" }))).toEqual([
      400,
      DELETE,
    ]);
    expect(await outcome(server.api("DELETE", TAGS, { resource_type: "nope", resource_id: "x" }))).toEqual([
      400,
      TYPE,
    ]);
  });
});

describe("permissions", () => {
  it("tags.read reads and tags.edit writes, each in its own account", async () => {
    await put("p", { a: "1" });
    const reader = await server.token(["tags.read"]);
    const editor = await server.token(["tags.edit"]);
    const stranger = await server.token(["tags.read", "tags.edit"], { account: "other" });
    const read = `${TAGS}?resource_type=worker&resource_id=p`;
    const body = { resource_type: "worker", resource_id: "p", tags: { a: "2" } };
    const status = async (method: string, path: string, token: string | null, sent?: object) =>
      (await server.api(method, path, sent, token)).status;
    expect(await status("GET", read, reader)).toBe(200);
    expect(await status("GET", read, editor)).toBe(403);
    expect(await status("GET", read, stranger)).toBe(403);
    expect(await status("GET", read, null)).toBe(401);
    for (const list of [
      "resources",
      "keys",
      "values/a",
      "summary",
      "changes",
      "history?resource_type=worker&resource_id=p",
    ]) {
      expect(await status("GET", `${TAGS}/${list}`, reader)).toBe(200);
      expect(await status("GET", `${TAGS}/${list}`, stranger)).toBe(403);
    }
    for (const method of ["PUT", "PATCH", "DELETE"]) {
      expect(await status(method, TAGS, reader, body)).toBe(403);
      expect(await status(method, TAGS, stranger, body)).toBe(403);
    }
    expect(await status("POST", `${TAGS}/bulk`, reader, { items: [] })).toBe(403);
    expect(await status("PUT", TAGS, editor, body)).toBe(200);
    expect(await status("GET", "/accounts/nowhere/tags?resource_type=worker&resource_id=p", ROOT_TOKEN)).toBe(
      404,
    );
  });

  it("one account's tags are not visible in another", async () => {
    await server.api("PUT", "/accounts/other/tags", {
      resource_type: "worker",
      resource_id: "secret",
      tags: { hidden: "x" },
    });
    expect((await get("secret")).status).toBe(500);
    const keys = await server.api("GET", `${TAGS}/keys?prefix=hidden`);
    expect(keys.body.result).toEqual([]);
    expect((await server.api("GET", `${TAGS}/resources?tag=hidden`)).body.result).toEqual([]);
  });
});

describe("zones", () => {
  const zone = "/zones/023e105f4ecef8ad9ca31a8372d0c353/tags";

  it("a zone has its own tags, shown with the zone and listed in the account", async () => {
    const body = { resource_type: "dns_record", resource_id: "rec", tags: { zoned: "yes" } };
    const { body: set } = await server.api("PUT", zone, body);
    expect(set.result.zone_id).toBe("023e105f4ecef8ad9ca31a8372d0c353");
    const read = "?resource_type=dns_record&resource_id=rec";
    expect((await server.api("GET", zone + read)).body).toEqual(set);
    expect((await server.api("GET", `/zones/other/tags${read}`)).status).toBe(500);
    expect((await server.api("GET", `${TAGS}/resources?tag=zoned`)).body.result).toEqual([set.result]);
    expect((await server.api("PATCH", zone, { ...body, tags: { more: "1" } })).body.result.tags).toEqual({
      more: "1",
      zoned: "yes",
    });
    expect((await server.api("GET", `${zone}/history${read}`)).body.result).toHaveLength(2);
    expect((await server.api("DELETE", zone, body)).status).toBe(204);
    expect((await server.api("GET", zone + read)).status).toBe(500);
  });

  it("a zone belongs to the token's account; root names the account in the query", async () => {
    const token = await server.token(["tags.read", "tags.edit"], { account: "other" });
    const body = { resource_type: "zone", resource_id: "z", tags: { owner: "other" } };
    const read = "?resource_type=zone&resource_id=z";
    expect((await server.api("PUT", zone, body, token)).status).toBe(200);
    expect((await server.api("GET", zone + read)).status).toBe(500);
    expect((await server.api("GET", `${zone}${read}&account_id=other`)).status).toBe(200);
    expect((await server.api("GET", `${zone}${read}&account_id=default`, undefined, token)).status).toBe(403);
    expect((await server.api("GET", zone + read, undefined, await server.token(["tags.edit"]))).status).toBe(
      403,
    );
    expect((await server.api("GET", zone + read, undefined, null)).status).toBe(401);
  });

  it("only zone types are accepted below zones", async () => {
    expect(
      await outcome(server.api("PUT", zone, { resource_type: "worker", resource_id: "x", tags: {} })),
    ).toEqual([400, TYPE]);
    const bad = await server.api("GET", "/zones/a%20b/tags?resource_type=zone&resource_id=z");
    expect([bad.status, bad.body.errors[0].code]).toEqual([400, 7002]);
  });
});

describe("etags", () => {
  const mismatch = failure(1016, "etag does not match");

  it("an etag depends on the content only", async () => {
    const one = (await put("e1", { a: "1", b: "2" })).body.result.etag;
    const two = (await put("e2", { b: "2", a: "1" })).body.result.etag;
    expect(one).toBe(two);
    expect((await put("e3", {})).body.result.etag).toBe("v1:RBNvo1WzZ4oRRq0W9-hkng");
  });

  it("a write with a stale etag is 412 with code 1016 and changes nothing", async () => {
    const { etag } = (await put("guard", { a: "old" })).body.result as { etag: string };
    for (const method of ["PUT", "PATCH", "DELETE"]) {
      expect(await outcome(conditional(method, "guard", "v1:AAAAAAAAAAAAAAAAAAAAAA"))).toEqual([
        412,
        mismatch,
      ]);
      expect(await outcome(conditional(method, "guard", `W/"${etag}"`))).toEqual([412, mismatch]);
    }
    expect((await get("guard")).body.result.tags).toEqual({ a: "old" });
    expect((await conditional("PUT", "guard", `"x", "${etag}"`)).status).toBe(200);
    expect((await conditional("PUT", "guard", etag)).status).toBe(412);
    expect((await conditional("DELETE", "guard", "*")).status).toBe(204);
    expect((await conditional("PUT", "guard", "*")).status).toBe(412);
    // The etag of the empty set matches only a resource without tags.
    expect((await conditional("PUT", "guard", "v1:RBNvo1WzZ4oRRq0W9-hkng")).status).toBe(200);
    expect((await conditional("PUT", "guard", "v1:RBNvo1WzZ4oRRq0W9-hkng", { b: "" })).status).toBe(412);
  });

  it("one of many concurrent writers succeeds, and readers see complete sets only", async () => {
    const { etag } = (await put("race", { a: "0", b: "0" })).body.result as { etag: string };
    const reads: Promise<{ body: { result: { tags: Record<string, string> } } }>[] = [];
    const writes = Array.from({ length: 20 }, (_, i) => {
      reads.push(get("race"));
      return conditional("PUT", "race", etag, { a: String(i + 1), b: String(i + 1) });
    });
    const statuses = (await Promise.all(writes)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 412)).toHaveLength(19);
    for (const { body } of await Promise.all(reads))
      expect(body.result.tags["a"]).toBe(body.result.tags["b"]);
  });
});
