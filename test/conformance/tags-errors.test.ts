/** Errors of setting and reading tags, with their exact messages, in the specified order. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failure, getTags, outcome, putTags, TAGS } from "../support/tags.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const put = (id: unknown, tags: unknown, type?: unknown) => putTags(server, id, tags, type);
const get = (id: string, type?: string) => getTags(server, id, type);

const SET = failure(1002, "Invalid set payload");
const TYPE = failure(1006, "Invalid resource type");
const KEY_LENGTH = failure(1011, "tag key too long (maximum 256 characters)");
const VALUE_LENGTH = failure(1012, "tag value too long (maximum 1024 characters)");
const KEY = failure(1014, "Invalid tag key");

describe("errors of a set", () => {
  it("a body of another shape is 1002", async () => {
    const good = { resource_type: "worker", resource_id: "x", tags: {} };
    const bodies: unknown[] = [
      "",
      "{",
      "nonsense",
      "null",
      "[]",
      '"text"',
      "1",
      "{}",
      { ...good, tags: undefined },
      { ...good, tags: null },
      { ...good, tags: [] },
      { ...good, tags: "a=b" },
      { ...good, tags: { a: 1 } },
      { ...good, tags: { a: null } },
      { ...good, tags: { a: ["b"] } },
      { ...good, tags: { a: { b: "c" } } },
      { ...good, tags: { a: true } },
      '{"resource_type":"worker","resource_id":"x","tags":{"a":"\\ud800"}}',
      { ...good, resource_id: undefined },
      { ...good, resource_id: "" },
      { ...good, resource_id: 5 },
      { ...good, resource_id: "a\u0000b" },
      { ...good, resource_id: "i".repeat(513) },
      { ...good, resource_type: undefined },
      { ...good, resource_type: "" },
      { ...good, resource_type: {} },
      { ...good, name: 7 },
    ];
    for (const body of bodies) expect(await outcome(server.api("PUT", TAGS, body))).toEqual([400, SET]);
    const invalidUtf8 = await fetch(server.url + TAGS, {
      method: "PUT",
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
      body: Buffer.from([0x7b, 0xff, 0x7d]),
    });
    expect([invalidUtf8.status, await invalidUtf8.json()]).toEqual([400, SET]);
  });

  it("checks run in order: shape, type, key lengths, key characters, value lengths", async () => {
    const long = "k".repeat(257);
    const value = "v".repeat(1025);
    expect(await outcome(put("x", { a: 1, [long]: "x" }, "nope"))).toEqual([400, SET]);
    expect(await outcome(put("x", { [long]: value, "b d": "x" }, "nope"))).toEqual([400, TYPE]);
    expect(await outcome(put("x", { "b d": value, [long]: "x" }))).toEqual([400, KEY_LENGTH]);
    expect(await outcome(put("x", { ok: value, "b d": "x" }))).toEqual([400, KEY]);
    expect(await outcome(put("x", { ok: value }))).toEqual([400, VALUE_LENGTH]);
    expect((await get("x")).status).toBe(500);
  });

  it("keys have at most 256 and values at most 1,024 code points, also beyond the basic plane", async () => {
    // U+10400 is a letter of two UTF-16 units; U+1D11E, a musical symbol, is not a letter.
    const wide = "\u{10400}";
    expect(
      (
        await put("edge", {
          ["k".repeat(256)]: "v".repeat(1024),
          [wide.repeat(256)]: "\u{1D11E}".repeat(1024),
        })
      ).status,
    ).toBe(200);
    expect((await get("edge")).body.result.tags[wide.repeat(256)]).toBe("\u{1D11E}".repeat(1024));
    expect(await outcome(put("edge", { ["k".repeat(257)]: "" }))).toEqual([400, KEY_LENGTH]);
    expect(await outcome(put("edge", { [wide.repeat(257)]: "" }))).toEqual([400, KEY_LENGTH]);
    expect(await outcome(put("edge", { k: "v".repeat(1025) }))).toEqual([400, VALUE_LENGTH]);
    expect(await outcome(put("edge", { k: "\u{1D11E}".repeat(1025) }))).toEqual([400, VALUE_LENGTH]);
  });

  it("keys consist of letters and digits of any script, _, . and -", async () => {
    const good = ["A.b-c_1", "ключ", "键", "٣", "é", "__proto__", "constructor", "toString", "-", ".", "0"];
    expect((await put("keys", Object.fromEntries(good.map((key) => [key, "x"])))).status).toBe(200);
    for (const key of [
      "",
      " ",
      "a b",
      "a=b",
      "a!b",
      "a,b",
      "a/b",
      "a:b",
      "a\n",
      "\u{1D11E}",
      "e\u0301",
      "\u0000",
      "½",
    ]) {
      expect(await outcome(put("keys", { [key]: "x" }))).toEqual([400, KEY]);
    }
  });

  it("keys like __proto__ are ordinary keys and pollute no prototype", async () => {
    const body =
      '{"resource_type":"worker","resource_id":"proto","tags":{"__proto__":"p","hasOwnProperty":"h"}}';
    const { body: set } = await server.api("PUT", TAGS, body);
    expect(Object.entries(set.result.tags)).toEqual([
      ["__proto__", "p"],
      ["hasOwnProperty", "h"],
    ]);
    expect(({} as Record<string, unknown>)["p"]).toBeUndefined();
    const { body: found } = await server.api("GET", `${TAGS}/resources?tag=__proto__=p`);
    expect(found.result.map((resource: { id: string }) => resource.id)).toEqual(["proto"]);
    const notAnObject = '{"resource_type":"worker","resource_id":"x","tags":{"a":"b"},"__proto__":null}';
    // Beside the tags it is an unknown field like any other.
    const refused = await server.api("PUT", TAGS, notAnObject);
    expect([refused.status, refused.body.errors[0].code]).toEqual([400, 1002]);
  });

  it("the last of duplicate members counts", async () => {
    const body =
      '{"resource_type":"queue","resource_type":"worker","resource_id":"dup","tags":{"a":"1","a":"2"}}';
    const { body: set } = await server.api("PUT", TAGS, body);
    expect(set.result).toMatchObject({ type: "worker", tags: { a: "2" } });
  });

  it("JSON is accepted with any content type", async () => {
    const response = await fetch(server.url + TAGS, {
      method: "PUT",
      headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "text/plain" },
      body: JSON.stringify({ resource_type: "worker", resource_id: "plain", tags: { a: "1" } }),
    });
    expect(response.status).toBe(200);
  });

  it("a body over the limit is 413 with code 7010; more tags than the limit are 1017", async () => {
    const huge = await server.api("PUT", TAGS, `{"tags":"${"x".repeat(1024 * 1024)}"}`);
    expect([huge.status, huge.body.errors[0].code]).toEqual([413, 7010]);
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`k${i}`, ""]));
    expect(await outcome(put("many", many))).toEqual([
      400,
      failure(1017, "too many tags on one resource (maximum 1000)"),
    ]);
    delete many["k0"];
    expect((await put("many", many)).status).toBe(200);
  });
});

describe("errors of a read", () => {
  it("a read needs both parameters (1003) and a known type (1006)", async () => {
    const required = failure(1003, "resource_type and resource_id are required");
    for (const query of [
      "",
      "?resource_type=worker",
      "?resource_id=x",
      "?resource_type=&resource_id=x",
      "?resource_type=nope",
    ]) {
      expect(await outcome(server.api("GET", TAGS + query))).toEqual([400, required]);
    }
    expect(await outcome(get("x", "nope"))).toEqual([400, TYPE]);
    expect(await outcome(get("x", "Worker"))).toEqual([400, TYPE]);
  });

  it("types from the configuration are known", async () => {
    const other = await startTestServer({
      file: { tags: { resourceTypes: ["robot", { name: "arm", scope: "zone" }] } },
    });
    const body = { resource_type: "robot", resource_id: "r2", tags: { a: "1" } };
    expect((await other.api("PUT", TAGS, body)).status).toBe(200);
    expect(await outcome(other.api("PUT", "/zones/z/tags", body))).toEqual([400, TYPE]);
    expect((await other.api("PUT", "/zones/z/tags", { ...body, resource_type: "arm" })).status).toBe(200);
    await other.stop();
  });
});
