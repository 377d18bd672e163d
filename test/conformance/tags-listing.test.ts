/** Tag lists: filters and their errors, keys, values, summary, paging. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
const PATH = "/accounts/default/tags";

beforeAll(async () => {
  server = await startTestServer();
  const resources: [string, string, Record<string, string>, string?][] = [
    ["worker", "w1", { env: "prod", team: "core", url: "a=b", list: "x,y" }, "Checkout API"],
    ["worker", "w2", { env: "staging", team: "core", path: "c:\\d" }, "checkout 100%_ready"],
    ["worker", "w3", { env: "dev", archived: "" }],
    ["queue", "q1", { ENV: "Prod", Team: "Core", region: "eu" }, "Orders"],
    ["queue", "q2", { region: "us", note: "" }],
  ];
  for (const [resource_type, resource_id, tags, name] of resources) {
    await server.api("PUT", PATH, {
      resource_type,
      resource_id,
      tags,
      ...(name === undefined ? {} : { name }),
    });
  }
});
afterAll(() => server.stop());

async function find(parameters: readonly (readonly [string, string])[]): Promise<string[]> {
  const query = new URLSearchParams(parameters.map(([name, value]): [string, string] => [name, value]));
  const { status, body } = await server.api("GET", `${PATH}/resources?${query.toString()}`);
  expect(status).toBe(200);
  return body.result.map((resource: { id: string }) => resource.id);
}
const byTag = (...filters: string[]) => find(filters.map((filter) => ["tag", filter] as const));

async function errorOf(...filters: string[]): Promise<[number, number, string]> {
  const query = new URLSearchParams(filters.map((filter): [string, string] => ["tag", filter]));
  const { status, body } = await server.api("GET", `${PATH}/resources?${query.toString()}`);
  return [status, body.errors[0].code, body.errors[0].message];
}

const folded = (...filters: string[]) =>
  find([["case_insensitive", "true"], ...filters.map((filter) => ["tag", filter] as const)]);
const listCode = async (query: string): Promise<number> =>
  (await server.api("GET", `${PATH}/resources?${query}`)).body.errors[0].code;

describe("filters", () => {
  it.each([
    [["env"], ["w1", "w2", "w3"]],
    [["env=prod"], ["w1"]],
    [["env=prod,staging"], ["w1", "w2"]],
    [["!env"], ["q1", "q2"]],
    [["env!=prod"], ["w2", "w3", "q1", "q2"]],
    [["env!=prod,dev"], ["w2", "q1", "q2"]],
    [
      ["env", "team=core"],
      ["w1", "w2"],
    ],
    [["env=prod", "env=dev"], []],
    [["env", "!archived", "env!=staging"], ["w1"]],
    [["url=a=b"], ["w1"]],
    [[String.raw`list=x\,y`], ["w1"]],
    [["list=x,y"], []],
    [[String.raw`path=c:\\d`], ["w2"]],
    [[String.raw`path=c:\d`], ["w2"]],
    [["note="], ["q2"]],
    [["archived="], ["w3"]],
    [["env=prod,"], ["w1"]],
    [["unknown"], []],
    [["!unknown", "env=dev"], ["w3"]],
    [["Env"], []],
  ])("%j finds %j", async (filters, expected) => {
    expect(await byTag(...filters)).toEqual(expected);
  });

  it("filters can ignore case in keys and values", async () => {
    expect(await folded("env=PROD")).toEqual(["w1", "q1"]);
    expect(await folded("TEAM")).toEqual(["w1", "w2", "q1"]);
    expect(await folded("!env")).toEqual(["q2"]);
    expect(await folded("ENV!=prod,STAGING")).toEqual(["w3", "q2"]);
    const { body } = await server.api("GET", `${PATH}/resources?tag=env=prod&case_insensitive=true`);
    expect(body.result[1].tags).toEqual({ ENV: "Prod", Team: "Core", region: "eu" });
  });

  it("filters can be combined with type, id and name", async () => {
    expect(await find([["type", "queue"]])).toEqual(["q1", "q2"]);
    expect(
      await find([
        ["type", "queue"],
        ["type", "worker"],
        ["tag", "!archived"],
      ]),
    ).toEqual(["w1", "w2", "q1", "q2"]);
    expect(
      await find([
        ["id", "q2"],
        ["id", "w1"],
        ["id", "nope"],
      ]),
    ).toEqual(["w1", "q2"]);
    expect(
      await find([
        ["id", "w1"],
        ["type", "queue"],
      ]),
    ).toEqual([]);
    expect(await find([["name", "CHECKOUT"]])).toEqual(["w1", "w2"]);
    expect(await find([["name", "0%_r"]])).toEqual(["w2"]);
    expect(
      await find([
        ["name", "q"],
        ["tag", "region"],
      ]),
    ).toEqual(["q2"]);
  });

  it("the query is decoded once, with + as space", async () => {
    await server.api("PUT", PATH, {
      resource_type: "image",
      resource_id: "i",
      tags: { t: "a b", u: "1+1", p: "%41" },
    });
    for (const query of ["t=a+b", "t=a%20b", "u=1%2B1", "p=%2541"]) {
      const { body } = await server.api("GET", `${PATH}/resources?tag=${query}`);
      expect(body.result).toHaveLength(1);
    }
  });

  it("a filter without a key, or with a leading ! and a value, is refused with 1007", async () => {
    const message = "tag parameter must be in format key, key=value, key=value1,value2, !key or key!=value";
    for (const filter of ["", "!", "=", "=x", "!=x", "!=", "!env=prod", "!env!=prod", "!env="]) {
      expect(await errorOf(filter)).toEqual([400, 1007, message]);
    }
  });

  it("checks run in order: number of filters, then for each filter syntax, key length, key characters, number of values, value length", async () => {
    const key = "k".repeat(257);
    const tooMany = Array.from({ length: 11 }, () => "v").join(",");
    const long = "v".repeat(1025);
    expect(await errorOf(...Array.from({ length: 21 }, () => "!"))).toEqual([
      400,
      1010,
      "too many tag filters (maximum 20)",
    ]);
    expect(await errorOf("ok", `${key} =${tooMany}`)).toEqual([
      400,
      1011,
      "tag key too long (maximum 256 characters)",
    ]);
    expect(await errorOf(`a b=${tooMany}`)).toEqual([400, 1014, "Invalid tag key"]);
    expect(await errorOf(`ok=${tooMany}${long}`)).toEqual([
      400,
      1013,
      "too many OR values in tag filter (maximum 10)",
    ]);
    expect(await errorOf(`ok=a,${long}`)).toEqual([
      400,
      1012,
      "tag value too long (maximum 1024 characters)",
    ]);
    expect((await errorOf(`ok=${long}`, "!"))[1]).toBe(1012);
    expect((await errorOf("!", `ok=${long}`))[1]).toBe(1007);
    for (const filter of ["a!b", "!!a", "a!", " a", "a b", "a!!=b", "a:b"])
      expect((await errorOf(filter))[1]).toBe(1014);
  });

  it("filters at the limits are accepted", async () => {
    const ten = Array.from({ length: 10 }, (_, i) => `v${i}`).join(",");
    expect(await byTag(...Array.from({ length: 20 }, () => "env=prod"))).toEqual(["w1"]);
    expect(await byTag(`env=${ten}`)).toEqual([]);
    expect(await byTag("k".repeat(256))).toEqual([]);
    expect(await byTag(`k=${"\u{1D11E}".repeat(1024)}`)).toEqual([]);
    expect((await errorOf(`k!=${"\u{1D11E}".repeat(1025)}`))[1]).toBe(1012);
    expect((await errorOf(`env!=${ten},x`))[1]).toBe(1013);
  });

  it("unknown types, too many ids, long names and invalid switches are refused", async () => {
    expect(await listCode("type=nope")).toBe(1006);
    expect(await listCode(Array.from({ length: 51 }, (_, i) => `id=${i}`).join("&"))).toBe(7002);
    expect(await listCode(`name=${"n".repeat(257)}`)).toBe(7002);
    expect(await listCode("case_insensitive=maybe")).toBe(7002);
    expect(await listCode("total=some")).toBe(7002);
    expect(await listCode("cursor=nonsense")).toBe(7002);
    expect(await find(Array.from({ length: 50 }, (_, i) => ["id", `x${i}`] as const))).toEqual([]);
    expect(await find([["id", "a\u0000b"]])).toEqual([]);
  });
});

describe("keys, values and summary", () => {
  it("keys and values are listed in text order, each once", async () => {
    const { body } = await server.api("GET", `${PATH}/keys`);
    expect(body.result).toEqual([
      "ENV",
      "Team",
      "archived",
      "env",
      "list",
      "note",
      "p",
      "path",
      "region",
      "t",
      "team",
      "u",
      "url",
    ]);
    expect(body.result_info).toEqual({ count: 13, cursor: null, cursors: {} });
    const values = await server.api("GET", `${PATH}/values/env`);
    expect(values.body.result).toEqual(["dev", "prod", "staging"]);
    expect((await server.api("GET", `${PATH}/values/region?type=worker`)).body.result).toEqual([]);
    expect((await server.api("GET", `${PATH}/values/region?type=queue`)).body.result).toEqual(["eu", "us"]);
    expect((await server.api("GET", `${PATH}/values/unknown`)).body).toMatchObject({
      success: true,
      result: [],
    });
  });

  it("keys and values can be counted and completed by prefix", async () => {
    const keys = await server.api("GET", `${PATH}/keys?counts=true&prefix=te`);
    expect(keys.body.result).toEqual([{ key: "team", count: 2 }]);
    const values = await server.api("GET", `${PATH}/values/env?counts=true&prefix=s`);
    expect(values.body.result).toEqual([{ value: "staging", count: 1 }]);
    const typed = await server.api("GET", `${PATH}/values/team?counts=true&type=worker`);
    expect(typed.body.result).toEqual([{ value: "core", count: 2 }]);
    expect((await server.api("GET", `${PATH}/keys?prefix=${"x".repeat(185)}`)).status).toBe(400);
  });

  it("keys and values disappear with the last resource that has them", async () => {
    const body = { resource_type: "worker", resource_id: "temp", tags: { brief: "1" } };
    await server.api("PUT", PATH, body);
    expect((await server.api("GET", `${PATH}/values/brief`)).body.result).toEqual(["1"]);
    await server.api("PUT", PATH, { ...body, tags: { brief: "2" } });
    expect((await server.api("GET", `${PATH}/values/brief`)).body.result).toEqual(["2"]);
    expect((await server.api("GET", `${PATH}/values/brief?type=worker`)).body.result).toEqual(["2"]);
    await server.api("DELETE", PATH, body);
    expect((await server.api("GET", `${PATH}/keys?prefix=brief`)).body.result).toEqual([]);
  });

  it("a list of values needs a key: 1009 with and without the slash; the key is checked and decoded", async () => {
    for (const path of ["values", "values/", "values/?type=worker"]) {
      const { status, body } = await server.api("GET", `${PATH}/${path}`);
      expect([status, body.errors[0]]).toEqual([400, { code: 1009, message: "tag_key is required" }]);
    }
    await server.api("PUT", PATH, { resource_type: "worker", resource_id: "cyr", tags: { ключ: "да" } });
    expect((await server.api("GET", `${PATH}/values/${encodeURIComponent("ключ")}`)).body.result).toEqual([
      "да",
    ]);
    const code = async (key: string) =>
      (await server.api("GET", `${PATH}/values/${key}`)).body.errors[0].code;
    expect(await code("a%2Fb")).toBe(1014);
    expect(await code("k".repeat(257))).toBe(1011);
    expect(await code("env?type=nope")).toBe(1006);
    await server.api("DELETE", PATH, { resource_type: "worker", resource_id: "cyr" });
  });

  it("the summary has keys and values together", async () => {
    const { body } = await server.api("GET", `${PATH}/summary?prefix=env`);
    expect(body.result).toEqual([{ key: "env", values: ["dev", "prod", "staging"] }]);
    const counted = await server.api("GET", `${PATH}/summary?prefix=team&counts=true`);
    expect(counted.body.result).toEqual([{ key: "team", count: 2, values: [{ value: "core", count: 2 }] }]);
  });
});

describe("pages", () => {
  const path = "/accounts/pages/tags";
  beforeAll(async () => {
    await server.api("POST", "/accounts", { id: "pages" });
    const items = Array.from({ length: 250 }, (_, i) => ({
      resource_type: i % 2 === 0 ? "worker" : "queue",
      resource_id: `r${i}`,
      tags: { all: "yes", [`k${String(i).padStart(3, "0")}`]: "", n: String(i).padStart(3, "0") },
    }));
    await server.api("POST", `${path}/bulk`, { items });
  });

  it("a page has 100 entries, two forms of the next position, and a total on request", async () => {
    const first = await server.api("GET", `${path}/resources?tag=all=yes&total=exact`);
    expect(first.body.result).toHaveLength(100);
    const { cursor } = first.body.result_info;
    expect(first.body.result_info).toEqual({
      count: 100,
      cursor,
      cursors: { after: cursor },
      total_count: 250,
    });
    const ids = first.body.result.map((resource: { id: string }) => resource.id);
    let last: unknown;
    for (let next = cursor; next !== null;) {
      const { body } = await server.api("GET", `${path}/resources?tag=all=yes&cursor=${next}`);
      expect(body.result_info).not.toHaveProperty("total_count");
      ids.push(...body.result.map((resource: { id: string }) => resource.id));
      next = body.result_info.cursor;
      last = body.result_info;
    }
    expect(last).toEqual({ count: 50, cursor: null, cursors: {} });
    expect(ids).toEqual(Array.from({ length: 250 }, (_, i) => `r${i}`));
  });

  it("exactly 100 entries have no second page", async () => {
    const { body } = await server.api(
      "GET",
      `${path}/resources?type=worker&tag=n!=248,246,244,242,240,238,236,234,232,230&tag=n!=228,226,224,222,220,218,216,214,212,210&tag=n!=208,206,204,202,200&total=exact`,
    );
    expect(body.result_info).toEqual({ count: 100, cursor: null, cursors: {}, total_count: 100 });
  });

  it("a cursor of other filters is refused", async () => {
    const { body } = await server.api("GET", `${path}/resources?tag=all=yes`);
    const other = await server.api("GET", `${path}/resources?tag=all&cursor=${body.result_info.cursor}`);
    expect([other.status, other.body.errors[0].code]).toEqual([400, 7002]);
  });

  it("keys, values and the summary are paged", async () => {
    for (const [list, size] of [
      ["keys", 252],
      ["values/n", 250],
      ["values/n?type=queue", 125],
      ["summary", 252],
    ] as const) {
      const seen: string[] = [];
      const separator = list.includes("?") ? "&" : "?";
      for (let next: string | null = ""; next !== null;) {
        const { body } = await server.api("GET", `${path}/${list}${separator}cursor=${next}`);
        seen.push(
          ...body.result.map((entry: string | { key: string }) =>
            typeof entry === "string" ? entry : entry.key,
          ),
        );
        next = body.result_info.cursor;
      }
      expect(seen).toHaveLength(size);
      expect(seen).toEqual([...seen].sort((a, b) => (a < b ? -1 : 1)));
    }
  });
});
