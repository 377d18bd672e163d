/** Tag features beyond the contract: merging, bulk writes, history, the change feed, and effects on other areas. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { waitUntil } from "../support/wait-until.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let now = Date.parse("2026-11-15T00:00:00.000Z");
const PATH = "/accounts/default/tags";

beforeAll(async () => {
  server = await startTestServer({ clock: { now: () => now } });
});
afterAll(() => server.stop());

const put = (id: string, tags: object, token?: string) =>
  server.api("PUT", PATH, { resource_type: "worker", resource_id: id, tags }, token);
const patch = (id: string, tags: object) =>
  server.api("PATCH", PATH, { resource_type: "worker", resource_id: id, tags });
const history = async (id: string) =>
  (await server.api("GET", `${PATH}/history?resource_type=worker&resource_id=${id}`)).body;

const patchCode = async (tags: unknown): Promise<number> =>
  (await patch("m", tags as object)).body.errors[0].code;

describe("merging", () => {
  it("a merge adds and replaces keys, removes null keys and keeps the others", async () => {
    await put("m", { a: "1", b: "2", c: "3" });
    const { status, body } = await patch("m", { a: "9", b: null, d: "4", nothing: null });
    expect([status, body.result.tags]).toEqual([200, { a: "9", c: "3", d: "4" }]);
    expect((await patch("fresh", { a: "1" })).body.result.tags).toEqual({ a: "1" });
  });

  it("a merge has the same limits as a set", async () => {
    expect(await patchCode({ a: 1 })).toBe(1002);
    expect(await patchCode([])).toBe(1002);
    expect(await patchCode({ "b d": null })).toBe(1014);
    expect(await patchCode({ ["k".repeat(257)]: null })).toBe(1011);
    expect(await patchCode({ a: "v".repeat(1025) })).toBe(1012);
    const many = Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`k${i}`, ""]));
    expect(await patchCode(many)).toBe(1017);
  });
});

const startJob = (body: object) => server.api("POST", `${PATH}/jobs`, body);
const readJob = async (id: string) => (await server.api("GET", `${PATH}/jobs/${id}`)).body.result;
const endOfJob = (id: string) =>
  waitUntil(
    () => readJob(id),
    ({ state }) => state !== "running",
  );

describe("jobs", () => {
  it("a job is started, followed to its end and listed, and says which resources it could not change", async () => {
    const full = Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`k${i}`, ""]));
    await put("j-full", { ...full, fleet: "a" });
    for (const id of ["j-1", "j-2"]) await put(id, { fleet: "a", n: id });
    await put("j-other", { fleet: "b" });
    const request = {
      operation: "patch",
      tag: ["fleet=a"],
      type: ["worker"],
      tags: { n: null, x: "1", y: "2" },
    };
    expect((await startJob({ ...request, dry_run: true })).body.result).toEqual({ total: 3 });
    const { status, body } = await startJob(request);
    expect(status).toBe(202);
    expect(body.result).toMatchObject({
      state: "running",
      operation: "patch",
      tags: { n: null, x: "1", y: "2" },
      query: { tag: ["fleet=a"], type: ["worker"], id: [], name: null, case_insensitive: false },
      actor: "root",
      total: 3,
      processed: 0,
      ended_at: null,
    });
    const ended = await endOfJob(body.result.id);
    expect(ended).toMatchObject({ state: "done", processed: 3, changed: 2, unchanged: 0, failed: 1 });
    const failures = await server.api("GET", `${PATH}/jobs/${ended.id}/failures`);
    expect(failures.body.result).toEqual([
      {
        type: "worker",
        id: "j-full",
        errors: [{ code: 1017, message: "too many tags on one resource (maximum 1000)" }],
      },
    ]);
    const resources = (await server.api("GET", `${PATH}/resources?tag=x=1&tag=!n`)).body.result;
    expect(resources.map(({ id }: { id: string }) => id)).toEqual(["j-1", "j-2"]);
    expect((await history("j-1")).result[0]).toMatchObject({ action: "patch", actor: "root" });
    expect((await server.api("GET", `${PATH}/jobs`)).body.result[0]).toEqual(ended);
    expect((await server.api("POST", `${PATH}/jobs/${ended.id}/cancel`)).body.result).toEqual(ended);
    const { body: audit } = await server.api("GET", "/accounts/default/audit_logs");
    expect(JSON.stringify(audit.result)).toContain(ended.id);
  });

  it("a job without a filter, with wrong tags or of another account is refused, and no refused job is stored", async () => {
    const refused = async (body: object) => (await startJob(body)).body.errors[0];
    const patchAll = { operation: "patch", all: true, tags: { a: "1" } };
    const before = (await server.api("GET", `${PATH}/jobs`)).body.result.length;
    expect(await refused({ operation: "delete" })).toMatchObject({ code: 7002 });
    expect(await refused({ ...patchAll, tag: ["a"] })).toMatchObject({ code: 7002 });
    expect(await refused({ operation: "delete", tag: [], type: [] })).toMatchObject({ code: 7002 });
    expect(await refused({ ...patchAll, tagg: [] })).toMatchObject({ code: 7002 });
    expect(await refused({ ...patchAll, operation: "explode" })).toMatchObject({ code: 7002 });
    expect(await refused({ ...patchAll, tags: {} })).toMatchObject({ code: 7002 });
    expect(await refused({ ...patchAll, operation: "delete" })).toMatchObject({ code: 7002 });
    expect(await refused({ ...patchAll, operation: "set", tags: { a: null } })).toMatchObject({ code: 1002 });
    expect(await refused({ ...patchAll, tags: undefined })).toMatchObject({ code: 1002 });
    expect(await refused({ ...patchAll, tags: { "b d": "1" } })).toMatchObject({ code: 1014 });
    expect(await refused({ operation: "delete", tag: ["=x"] })).toMatchObject({ code: 1007 });
    expect(await refused({ operation: "delete", type: ["nope"] })).toMatchObject({ code: 1006 });
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`k${i}`, ""]));
    expect(await refused({ ...patchAll, operation: "set", tags: many })).toMatchObject({ code: 1017 });
    expect((await server.api("GET", `${PATH}/jobs`)).body.result).toHaveLength(before);
    const none = "/accounts/default/tags/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (const path of [none, `${none}/failures`]) expect((await server.api("GET", path)).status).toBe(404);
    expect((await server.api("POST", `${none}/cancel`)).status).toBe(404);
  });
});

const bulk = (body: unknown, query = "") => server.api("POST", `${PATH}/bulk${query}`, body);
const item = (resource_id: string, tags: unknown, rest: object = {}) => ({
  resource_type: "worker",
  resource_id,
  tags,
  ...rest,
});

describe("bulk", () => {
  it("each item of a bulk write is applied on its own, and the results are in order", async () => {
    await put("b0", { old: "1" });
    const { status, body } = await bulk({
      items: [
        item("b1", { a: "1" }),
        item("b2", { "bad key": "1" }),
        item("b0", { new: "1" }, { operation: "patch" }),
        item("b0", {}, { if_match: "v1:AAAAAAAAAAAAAAAAAAAAAA" }),
        { resource_type: "worker", resource_id: "b1", operation: "delete" },
        { resource_type: "nope", resource_id: "b1", operation: "delete" },
        "nonsense",
        item("b3", { a: "1" }, { operation: "explode" }),
      ],
    });
    expect(status).toBe(200);
    expect(
      body.result.map(
        (entry: { success: boolean; errors: { code: number }[] }) => entry.errors[0]?.code ?? entry.success,
      ),
    ).toEqual([true, 1014, true, 1016, true, 1006, 1002, 1002]);
    expect(body.result[2].result.tags).toEqual({ new: "1", old: "1" });
    expect(body.result_info).toEqual({ count: 8, succeeded: 3, failed: 5, dry_run: false });
    expect((await server.api("GET", `${PATH}?resource_type=worker&resource_id=b1`)).status).toBe(500);
  });

  it("dry_run reports the result of each item and stores nothing", async () => {
    const items = [
      item("dry", { a: "1" }),
      item("dry", { b: "2" }, { operation: "patch" }),
      item("dry", {}, { if_match: "*", operation: "delete" }),
    ];
    for (const answer of [await bulk({ items, dry_run: true }), await bulk({ items }, "?dry_run=true")]) {
      expect(answer.body.result[1].result.tags).toEqual({ a: "1", b: "2" });
      expect(answer.body.result_info).toEqual({ count: 3, succeeded: 3, failed: 0, dry_run: true });
    }
    expect((await server.api("GET", `${PATH}?resource_type=worker&resource_id=dry`)).status).toBe(500);
    expect((await history("dry")).result).toEqual([]);
  });

  it("a body that is not a list, and more than 1,000 items, are refused", async () => {
    const code = async (body: unknown) => (await bulk(body)).body.errors[0].code;
    expect(await code({})).toBe(1002);
    expect(await code("{")).toBe(1002);
    expect(await code({ items: [], dry_run: "yes" })).toBe(1002);
    expect(await code({ items: Array.from({ length: 1001 }, () => ({})) })).toBe(7002);
    expect((await bulk({ items: [] })).body.result).toEqual([]);
    const thousand = await bulk({
      items: Array.from({ length: 1000 }, (_, i) => item(`t${i}`, { bulk: String(i % 7) })),
    });
    expect(thousand.body.result_info).toMatchObject({ count: 1000, succeeded: 1000 });
    const { body } = await server.api("GET", `${PATH}/resources?tag=bulk&total=exact`);
    expect(body.result_info.total_count).toBe(1000);
  });
});

describe("history", () => {
  it("the history lists actor, change and time, newest first, also after a deletion", async () => {
    const token = await server.token(["tags.edit"]);
    await put("h", { a: "1" });
    now += 1000;
    await put("h", { a: "2" }, token);
    now += 1000;
    await patch("h", { b: "3" });
    await server.api("DELETE", PATH, { resource_type: "worker", resource_id: "h" });
    const { result, result_info } = await history("h");
    expect(result_info).toEqual({ count: 4, cursor: null, cursors: {} });
    expect(result.map((change: { action: string }) => change.action)).toEqual([
      "delete",
      "patch",
      "set",
      "set",
    ]);
    expect(result[0]).toMatchObject({
      actor: "root",
      before: { a: "2", b: "3" },
      after: null,
      type: "worker",
      id: "h",
    });
    expect(result[2]).toMatchObject({
      actor: expect.stringMatching(/^token:/),
      before: { a: "1" },
      after: { a: "2" },
      changed_at: "2026-11-15T00:00:01.000Z",
    });
    expect(JSON.stringify(result)).not.toContain(token);
  });

  it("times in the history never decrease, even if the clock is set back", async () => {
    await put("clock", { a: "1" });
    now -= 60_000;
    const { body } = await put("clock", { a: "2" });
    now += 60_000;
    const { result } = await history("clock");
    expect(body.result.tags_updated_at).toBe(result[1].changed_at);
  });

  it("the history is paged", async () => {
    for (let i = 0; i < 105; i++) await put("paged", { n: String(i) });
    const first = await history("paged");
    expect(first.result).toHaveLength(100);
    const { body } = await server.api(
      "GET",
      `${PATH}/history?resource_type=worker&resource_id=paged&cursor=${first.result_info.cursor}`,
    );
    expect(body.result.map((change: { after: { n: string } }) => change.after.n)).toEqual([
      "4",
      "3",
      "2",
      "1",
      "0",
    ]);
  });
});

const changes = (query: string) => server.api("GET", `/accounts/feed/tags/changes${query}`);
const writeToFeed = (n: number) =>
  server.api("PUT", "/accounts/feed/tags", {
    resource_type: "worker",
    resource_id: `f${n}`,
    tags: { n: String(n) },
  });

const until = async (reader: ReadableStreamDefaultReader<string>, text: string) => {
  let seen = "";
  while (!seen.includes(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the stream ended after ${seen}`);
    seen += value;
  }
  return seen;
};

describe("the change feed", () => {
  beforeAll(async () => {
    await server.api("POST", "/accounts", { id: "feed" });
  });

  it("the feed continues from a position, in order, and always returns the next position", async () => {
    expect((await changes("")).body).toMatchObject({
      result: [],
      result_info: { count: 0, cursor: "0", has_more: false },
    });
    for (let n = 1; n <= 5; n++) await writeToFeed(n);
    const first = (await changes("?limit=3")).body;
    expect(first.result.map((change: { id: string }) => change.id)).toEqual(["f1", "f2", "f3"]);
    expect(first.result_info).toEqual({ count: 3, cursor: "3", has_more: true });
    const rest = (await changes("?after=3")).body;
    expect(rest.result.map((change: { position: string }) => change.position)).toEqual(["4", "5"]);
    expect((await changes("?after=newest")).body.result_info.cursor).toBe("5");
    for (const query of ["?after=x", "?after=-1", "?limit=0", "?limit=101"])
      expect((await changes(query)).status).toBe(400);
  });

  it("the feed streams changes, resumes after the last event, and ends when the server stops", async () => {
    const own = await startTestServer();
    const url = `${own.url}${PATH}/changes?after=newest`;
    const open = async (headers: Record<string, string> = {}) => {
      const response = await fetch(url, {
        headers: { authorization: `Bearer ${ROOT_TOKEN}`, accept: "text/event-stream", ...headers },
      });
      expect(response.headers.get("content-type")).toBe("text/event-stream");
      return (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    };
    const reader = await open();
    await until(reader, ":\n\n");
    const set = (n: string) =>
      own.api("PUT", PATH, { resource_type: "worker", resource_id: "s", tags: { n } });
    await set("one");
    const event = await until(reader, '"one"');
    expect(event).toMatch(/^id: 1\nevent: change\ndata: \{/m);
    await reader.cancel();
    await set("two");
    const resumed = await open({ "last-event-id": "1" });
    expect(await until(resumed, '"two"')).toContain("id: 2\n");
    await own.stop();
    for (let end = await resumed.read(); !end.done; end = await resumed.read());
    expect(own.logs.filter((line) => line["msg"] === "request failed")).toEqual([]);
  });

  it("a position that is too old is answered 410 with code 1018", async () => {
    let time = Date.parse("2026-11-15T00:00:00Z");
    const clock = { now: () => time };
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-test-"));
    const write = (to: TestServer, a: string) =>
      to.api("PUT", PATH, { resource_type: "worker", resource_id: "x", tags: { a } });
    const before = await startTestServer({ clock, dataDir });
    await write(before, "1");
    time += 2 * 24 * 60 * 60 * 1000;
    await write(before, "2");
    await before.stop();
    // Old changes are removed in the background after the start.
    const own = await startTestServer({ clock, dataDir, file: { tags: { historyDays: 1 } } });
    await vi.waitFor(
      async () => {
        const late = await own.api("GET", `${PATH}/changes?after=0`);
        expect([late.status, late.body.errors?.[0]?.code]).toEqual([410, 1018]);
      },
      { timeout: 600_000 },
    );
    const kept = await own.api("GET", `${PATH}/changes`);
    expect(kept.body.result.map((change: { position: string }) => change.position)).toEqual(["2"]);
    await own.stop();
    await rm(dataDir, { recursive: true });
  });
});

describe("effects on other areas", () => {
  it("deleting a token deletes its tags, and the history records it", async () => {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "t",
      permissions: ["tags.read"],
    });
    const id = body.result.id as string;
    await server.api("PUT", PATH, { resource_type: "api_token", resource_id: id, tags: { owner: "ops" } });
    await server.api("DELETE", `/accounts/default/tokens/${id}`);
    expect((await server.api("GET", `${PATH}?resource_type=api_token&resource_id=${id}`)).status).toBe(500);
    expect((await server.api("GET", `${PATH}/resources?tag=owner=ops`)).body.result).toEqual([]);
    const { body: changes } = await server.api(
      "GET",
      `${PATH}/history?resource_type=api_token&resource_id=${id}`,
    );
    expect(changes.result[0]).toMatchObject({ action: "resource_deleted", actor: "system", after: null });
  });

  it("the routes are documented in OpenAPI", async () => {
    const { body } = await server.api("GET", "/openapi.json");
    expect(
      Object.keys(body.paths)
        .filter((path) => path.includes("/tags"))
        .sort(),
    ).toEqual([
      "/accounts/{account_id}/tags",
      "/accounts/{account_id}/tags/bulk",
      "/accounts/{account_id}/tags/changes",
      "/accounts/{account_id}/tags/history",
      "/accounts/{account_id}/tags/jobs",
      "/accounts/{account_id}/tags/jobs/{job_id}",
      "/accounts/{account_id}/tags/jobs/{job_id}/cancel",
      "/accounts/{account_id}/tags/jobs/{job_id}/failures",
      "/accounts/{account_id}/tags/keys",
      "/accounts/{account_id}/tags/resources",
      "/accounts/{account_id}/tags/summary",
      "/accounts/{account_id}/tags/values",
      "/accounts/{account_id}/tags/values/{tag_key}",
      "/zones/{zone_id}/tags",
      "/zones/{zone_id}/tags/history",
    ]);
    expect(
      body.paths["/accounts/{account_id}/tags"].put.requestBody.content["application/json"].schema.required,
    ).toEqual(["resource_type", "resource_id", "tags"]);
  });
});
