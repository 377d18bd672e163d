/**
 * Mistakes of a tags caller have no side effect: they widen no list, overwrite nothing, create no record and select
 * no other resource.
 */
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.api("POST", "/accounts", { id: "other" });
  for (const [id, tags] of Object.entries({
    w1: { env: "prod", team: "core", Mixed: "A" },
    w2: { env: "dev", team: "core" },
    w3: { env: "dev", region: "eu", mixed: "b" },
  }))
    await server.api("PUT", PATH, { resource_type: "worker", resource_id: id, tags });
  await server.api("PUT", PATH, {
    resource_type: "queue",
    resource_id: "q",
    tags: { env: "dev", kind: "x" },
  });
});
afterAll(() => server.stop());

const PATH = "/accounts/default/tags";
const list = async (path: string) => (await server.api("GET", `${PATH}/${path}`)).body.result as unknown;
const refusal = async (answer: Promise<{ status: number; body: { errors: { code: number }[] } }>) => {
  const { status, body } = await answer;
  return [status, body.errors[0]?.code];
};

/** node:http instead of fetch, because an empty header must reach the server. */
function withIfMatch(
  value: string | string[],
  id: string,
): Promise<{ status: number; code: number | undefined }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${ROOT_TOKEN}` };
    const request = httpRequest(server.url + PATH, { method: "PUT", headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        const { errors } = JSON.parse(text) as { errors: { code: number }[] };
        resolve({ status: response.statusCode ?? 0, code: errors[0]?.code });
      });
    });
    request.setHeader("if-match", value);
    request.on("error", reject);
    request.end(JSON.stringify({ resource_type: "worker", resource_id: id, tags: { new: "1" } }));
  });
}

describe("a deletion", () => {
  const target = { resource_type: "worker", resource_id: "d1" };
  const query = "resource_type=worker&resource_id=d1";

  it.each([
    ["names another id than the query", query, { ...target, resource_id: "d2" }],
    ["names another type than the query", query, { ...target, resource_type: "queue" }],
    ["lacks the id, which the query has", "resource_id=d1", { resource_type: "worker" }],
    ["lacks the type, which the query has", query, { resource_id: "d1" }],
    ["is empty beside a query", query, {}],
    ["contradicts itself", query, { ...target, type: "queue" }],
    ["contradicts itself in the id", "", { ...target, id: "d2" }],
    ["lacks the parent that the query has", `${query}&worker_id=w`, target],
  ])("whose body %s is 400/1015 and deletes nothing", async (_, parameters, body) => {
    for (const id of ["d1", "d2"]) {
      await server.api("PUT", PATH, { resource_type: "worker", resource_id: id, tags: { a: "1" } });
      await server.api("PUT", PATH, { resource_type: "queue", resource_id: id, tags: { a: "1" } });
    }
    expect(await refusal(server.api("DELETE", `${PATH}?${parameters}`, body))).toEqual([400, 1015]);
    expect(await list("resources?id=d1&id=d2")).toHaveLength(4);
  });

  it("may name the same resource in the body and in the query, or in one of them", async () => {
    for (const [parameters, body] of [
      [query, target],
      [query, { type: "worker", id: "d1" }],
      [query, undefined],
      ["", target],
    ] as const) {
      await server.api("PUT", PATH, { ...target, tags: { a: "1" } });
      expect((await server.api("DELETE", `${PATH}?${parameters}`, body)).status).toBe(204);
      expect(await list("resources?id=d1&type=worker")).toEqual([]);
    }
  });
});

describe("lists of keys and values", () => {
  it("a list of values takes several types", async () => {
    expect(await list("values/env?type=worker&type=queue&counts=true")).toEqual([
      { value: "dev", count: 3 },
      { value: "prod", count: 1 },
    ]);
    expect(await list("values/kind?type=worker&type=queue")).toEqual(["x"]);
    expect(await list("values/env?type=queue&type=queue")).toEqual(["dev"]);
    expect(await list("values/kind?type=worker&type=queue&tag=env=prod")).toEqual([]);
    expect(await refusal(server.api("GET", `${PATH}/values/env?type=worker&type=nothing`))).toEqual([
      400, 1006,
    ]);
  });

  it("lists of keys and values accept the filters of the resource list", async () => {
    expect(await list("keys?tag=env=prod")).toEqual(["Mixed", "env", "team"]);
    expect(await list("keys?tag=env&tag=!team")).toEqual(["env", "kind", "mixed", "region"]);
    expect(await list("keys?tag=env=nothing")).toEqual([]);
    expect(await list("keys?tag=env=dev&counts=true&prefix=e")).toEqual([{ key: "env", count: 3 }]);
    expect(await list("values/env?tag=team=core")).toEqual(["dev", "prod"]);
    expect(await list("values/env?tag=region")).toEqual(["dev"]);
    expect(await list("values/env?tag=env=dev&type=queue&counts=true")).toEqual([{ value: "dev", count: 1 }]);
    expect(await list("values/team?tag=region")).toEqual([]);
    expect(await list("keys?tag=MIXED&case_insensitive=true&prefix=m")).toEqual(["mixed"]);
    expect(await list("summary?tag=region")).toEqual([
      { key: "env", values: ["dev"] },
      { key: "mixed", values: ["b"] },
      { key: "region", values: ["eu"] },
    ]);
  });

  it("many resources give the same lists, page by page, as few", async () => {
    const path = "/accounts/other/tags";
    const items = Array.from({ length: 1200 }, (_, i) => ({
      resource_type: "worker",
      resource_id: `r${i}`,
      tags: {
        [i % 4 === 0 ? "Half" : "half"]: i % 2 === 0 ? "Yes" : "no",
        [`k${String(i % 130).padStart(3, "0")}`]: String(i),
        all: "1",
      },
    }));
    for (let at = 0; at < items.length; at += 600)
      await server.api("POST", `${path}/bulk`, { items: items.slice(at, at + 600) });
    const walk = async (list: string) => {
      const seen: unknown[] = [];
      for (let next: string | null = ""; next !== null;) {
        const { body } = await server.api("GET", `${path}/${list}&cursor=${next}`);
        seen.push(...(body.result as unknown[]));
        next = body.result_info.cursor as string | null;
      }
      return seen;
    };
    const count = (key: string, wanted: (i: number) => boolean) =>
      items.filter((item, i) => key in item.tags && wanted(i)).length;
    const keys = [
      "Half",
      "all",
      "half",
      ...Array.from({ length: 130 }, (_, i) => `k${String(i).padStart(3, "0")}`),
    ];
    const expected = (wanted: (i: number) => boolean) =>
      keys
        .map((key) => ({ key, count: count(key, wanted) }))
        .filter((entry) => entry.count > 0)
        .sort((a, b) => (a.key < b.key ? -1 : 1));
    expect(await walk("keys?counts=true&tag=all")).toEqual(expected(() => true));
    expect(await walk("keys?counts=true&tag=half=no")).toEqual(expected((i) => i % 2 === 1));
    expect(await walk("keys?counts=true&tag=HALF&case_insensitive=true")).toEqual(expected(() => true));
    expect(await walk("values/half?counts=true&tag=all")).toEqual([
      { value: "Yes", count: 300 },
      { value: "no", count: 600 },
    ]);
    expect(await walk("values/all?counts=true&tag=Half=yes&case_insensitive=true")).toEqual([
      { value: "1", count: 600 },
    ]);
  });

  it("a 21st filter and invalid filters are refused", async () => {
    const many = Array.from({ length: 21 }, () => "tag=env").join("&");
    for (const path of ["resources", "keys", "values/env", "summary"]) {
      expect(await refusal(server.api("GET", `${PATH}/${path}?${many}`))).toEqual([400, 1010]);
      expect(await refusal(server.api("GET", `${PATH}/${path}?tag=!a=b`))).toEqual([400, 1007]);
    }
  });

  it("a cursor of other filters is refused", async () => {
    const { body } = await server.api("GET", "/accounts/other/tags/keys?tag=all");
    const next = `cursor=${body.result_info.cursor}`;
    expect(await refusal(server.api("GET", `/accounts/other/tags/keys?${next}`))).toEqual([400, 7002]);
    expect(await refusal(server.api("GET", `/accounts/other/tags/keys?tag=half&${next}`))).toEqual([
      400, 7002,
    ]);
  });
});

describe("an unknown parameter", () => {
  const named = "resource_type=worker&resource_id=w1";
  it.each([
    ["GET", "/resources?Tag=env"],
    ["GET", "/resources?tag[]=env"],
    ["GET", "/resources?tag%5B%5D=env"],
    ["GET", "/resources?tag=env&typ=worker"],
    ["GET", "/resources?=env"],
    ["GET", "/keys?tags=env"],
    ["GET", "/keys?type=worker"],
    ["GET", "/values/env?resource_type=worker"],
    ["GET", "/values?Type=worker"],
    ["GET", "/summary?page=2"],
    ["GET", "/changes?since=1"],
    ["GET", `/history?${named}&limit=1`],
    ["GET", `?${named}&name=x`],
    ["PUT", `?${named}`],
    ["PATCH", "?dry_run=true"],
    ["DELETE", `?${named}&workerId=1`],
    ["POST", "/bulk?dryrun=true"],
  ])("an unknown parameter is refused by name: %s %s", async (method, path) => {
    const body = method === "GET" ? undefined : { resource_type: "worker", resource_id: "w1", tags: {} };
    const { status, body: answer } = await server.api(method, PATH + path, body);
    expect([status, answer.errors[0].code]).toEqual([400, 7002]);
    expect(answer.errors[0].message).toMatch(/^unknown parameter "/);
    expect(await list("values/env?tag=team=core")).toEqual(["dev", "prod"]);
  });

  it("an unknown parameter below zones, which also accept account_id, is refused", async () => {
    const path = "/zones/z/tags";
    const named = "resource_type=dns_record&resource_id=d";
    const body = { resource_type: "dns_record", resource_id: "d", tags: { a: "1" } };
    expect((await server.api("PUT", `${path}?account_id=other`, body)).status).toBe(200);
    expect((await server.api("GET", `${path}?${named}&account_id=other`)).status).toBe(200);
    expect(await refusal(server.api("GET", `${path}?${named}&accountId=other`))).toEqual([400, 7002]);
    expect(await refusal(server.api("PUT", `${path}?account=other`, body))).toEqual([400, 7002]);
    expect(await refusal(server.api("GET", `${path}/history?${named}&Cursor=`))).toEqual([400, 7002]);
  });
});

describe("a merge that only removes keys", () => {
  it("a resource that was never tagged stays without a record", async () => {
    const named = { resource_type: "worker", resource_id: "never" };
    for (const tags of [{ x: null }, {}]) {
      const { status, body, headers } = await server.api("PATCH", PATH, { ...named, tags });
      expect([status, body.result.tags]).toEqual([200, {}]);
      expect(headers.get("etag")).toBe(`"${body.result.etag}"`);
    }
    const bulk = await server.api("POST", `${PATH}/bulk`, {
      items: [{ ...named, operation: "patch", tags: { x: null } }],
    });
    expect(bulk.body.result[0]).toMatchObject({ success: true, result: { id: "never", tags: {} } });
    const query = "resource_type=worker&resource_id=never";
    expect(await refusal(server.api("GET", `${PATH}?${query}`))).toEqual([500, 1004]);
    expect(await list(`history?${query}`)).toEqual([]);
  });

  it("a resource whose tags were deleted stays without a record", async () => {
    const named = { resource_type: "worker", resource_id: "gone" };
    await server.api("PUT", PATH, { ...named, tags: { a: "1" } });
    await server.api("DELETE", PATH, named);
    await server.api("PATCH", PATH, { ...named, tags: { a: null } });
    expect(await refusal(server.api("GET", `${PATH}?resource_type=worker&resource_id=gone`))).toEqual([
      500, 1004,
    ]);
  });
});

describe("If-Match", () => {
  it("an empty or malformed If-Match is refused, and nothing is written", async () => {
    for (const value of ["", " ", ",", " , ,", "*, *", '*, "a"', '"a', "a b", '"a" "b"', 'w/"a"', '"a"b'])
      expect([value, await withIfMatch(value, "w2")]).toEqual([value, { status: 400, code: 7002 }]);
    expect(await list("values/new")).toEqual([]);
  });

  it("If-Match compares strongly, accepts quoted and bare lists and ignores empty elements", async () => {
    const { body } = await server.api("GET", `${PATH}?resource_type=worker&resource_id=w2`);
    const etag = body.result.etag as string;
    for (const value of [`W/"${etag}"`, `"x", W/"${etag}"`, '"x,y"', `"${etag},"`, etag.toUpperCase()])
      expect([value, await withIfMatch(value, "w2")]).toEqual([value, { status: 412, code: 1016 }]);
    expect((await withIfMatch(['"x"', `,"${etag}",`], "w2")).status).toBe(200);
    const bare = await server.api("GET", `${PATH}?resource_type=worker&resource_id=w2`);
    expect((await withIfMatch(`x,${bare.body.result.etag as string}`, "w2")).status).toBe(200);
  });

  it("* matches every resource that has a record, even an empty one, and no other", async () => {
    await server.api("PUT", PATH, { resource_type: "worker", resource_id: "blank", tags: {} });
    expect((await withIfMatch("*", "blank")).status).toBe(200);
    expect((await withIfMatch(" * ", "blank")).status).toBe(200);
    expect(await withIfMatch("*", "nobody")).toEqual({ status: 412, code: 1016 });
  });

  it("an empty If-Match in a bulk item is refused", async () => {
    const { body } = await server.api("POST", `${PATH}/bulk`, {
      items: [{ resource_type: "worker", resource_id: "w1", tags: {}, if_match: "" }],
    });
    expect(body.result[0]).toMatchObject({ success: false, errors: [{ code: 7002 }] });
  });
});

describe("writing back a read result", () => {
  it("a read result can be written back unchanged", async () => {
    const version = { resource_type: "worker_version", resource_id: "v", worker_id: "w" };
    await server.api("PUT", PATH, { ...version, name: "Version", tags: { a: "1" } });
    const query = new URLSearchParams(version).toString();
    const read = await server.api("GET", `${PATH}?${query}`);
    const back = await server.api("PUT", PATH, read.body.result);
    expect([back.status, back.body]).toEqual([200, read.body]);
    expect((await server.api("PUT", PATH, { ...version, ...read.body.result })).body).toEqual(read.body);
    const bulk = await server.api("POST", `${PATH}/bulk`, { items: [read.body.result] });
    expect(bulk.body.result[0]).toMatchObject({ success: true, result: read.body.result });

    const zone = "/zones/z1/tags";
    const record = { resource_type: "dns_record", resource_id: "d" };
    const zoned = (await server.api("PUT", zone, { ...record, tags: { a: "1" } })).body.result;
    expect((await server.api("PUT", zone, zoned)).body.result).toEqual(zoned);
    // On another path it would be another resource.
    expect(await refusal(server.api("PUT", PATH, zoned))).toEqual([400, 1002]);
    expect(await refusal(server.api("PUT", "/zones/z2/tags", zoned))).toEqual([400, 1002]);
  });

  it("two spellings of type or id that differ, or an incomplete pair, are refused with 1002", async () => {
    const tags = { a: "1" };
    for (const body of [
      { resource_type: "worker", resource_id: "w1", id: "w2", tags },
      { resource_type: "worker", type: "queue", resource_id: "w1", tags },
      { type: "worker", tags },
      { id: "w1", tags },
    ])
      expect(await refusal(server.api("PUT", PATH, body))).toEqual([400, 1002]);
  });

  it("an unknown field is refused by name", async () => {
    const named = { resource_type: "worker", resource_id: "w1" };
    const set = await server.api("PUT", PATH, { ...named, tags: {}, workerId: "x" });
    expect([set.status, set.body.errors[0]]).toEqual([
      400,
      { code: 1002, message: 'Invalid set payload: unknown field "workerId"' },
    ]);
    const removed = await server.api("DELETE", PATH, { ...named, workerId: "x" });
    expect([removed.status, removed.body.errors[0]]).toEqual([
      400,
      { code: 1015, message: 'Invalid delete payload: unknown field "workerId"' },
    ]);
    expect(await refusal(server.api("POST", `${PATH}/bulk`, { items: [], dryRun: true }))).toEqual([
      400, 7002,
    ]);
    const bulk = await server.api("POST", `${PATH}/bulk`, { items: [{ ...named, tags: {}, ifMatch: "x" }] });
    expect(bulk.body.result[0].errors[0].code).toBe(1002);
  });
});

describe("the tags of an account", () => {
  it("an account's tags are set below its own path only, whether or not another account exists", async () => {
    const put = (account: string, id: string, token?: string) =>
      server.api(
        "PUT",
        `/accounts/${account}/tags`,
        { resource_type: "account", resource_id: id, tags: { a: "1" } },
        token,
      );
    const token = await server.token(["tags.read", "tags.edit"]);
    expect((await put("default", "default", token)).status).toBe(200);
    const existing = await put("default", "other", token);
    const missing = await put("default", "no-such-account", token);
    expect([existing.status, existing.body]).toEqual([403, missing.body]);
    expect(existing.body.errors[0].code).toBe(10003);
    expect(await refusal(put("default", "other"))).toEqual([403, 10003]);
    const bulk = await server.api("POST", `${PATH}/bulk`, {
      items: [{ resource_type: "account", resource_id: "other", tags: { a: "1" } }],
    });
    expect(bulk.body.result[0].errors[0].code).toBe(10003);
  });

  it("no response distinguishes ids of other accounts' resources from unknown ids", async () => {
    await server.api("POST", "/accounts/other/ai-gateway/gateways", { id: "theirs" });
    const token = await server.token(["tags.read", "tags.edit"]);
    const answers = [];
    for (const id of ["theirs", "nobodys"]) {
      const named = { resource_type: "ai_gateway", resource_id: id };
      const set = await server.api("PUT", PATH, { ...named, tags: { a: "1" } }, token);
      const removed = await server.api("DELETE", PATH, named, token);
      const read = await server.api(
        "GET",
        `${PATH}?resource_type=ai_gateway&resource_id=${id}`,
        undefined,
        token,
      );
      answers.push([
        set.status,
        Object.keys(set.body.result),
        removed.status,
        read.status,
        read.body.errors[0].code,
      ]);
    }
    expect(answers[0]).toEqual(answers[1]);
  });
});
