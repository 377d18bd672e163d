import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AssetRules, Assets } from "./assets.ts";
import { parseRange } from "./range.ts";

const outside = mkdtempSync(join(tmpdir(), "assets-"));
const folder = join(outside, "public");

beforeAll(() => {
  mkdirSync(join(folder, "a/b"), { recursive: true });
  for (const [path, text] of Object.entries({
    "index.html": "home",
    "about.html": "about",
    "docs/index.html": "docs",
    "app.js": "code",
    "both.html": "plain",
    "both/index.html": "index",
    "404.html": "gone",
    "a/404.html": "a gone",
    "digits.txt": "0123456789",
    "empty.txt": "",
    _headers: "/*",
    "with space.html": "space",
    ".assetsignore": "# server code\n_worker.js/\n*.map\n/notes/*\n!/notes/public.txt\n",
    "_worker.js": "server code",
    "hidden/_worker.js/index.js": "server code",
    "hidden/deep/file.map": "map",
    ".dev.vars": "SECRET=1",
    ".git/config": "git",
    "a/.git/config": "git",
    "notes/draft.txt": "draft",
    "notes/public.txt": "notes",
    ".well-known/security.txt": "contact",
    "a/_worker.js": "a page's script",
    "admin/data.txt": "data",
  })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  writeFileSync(join(outside, "secret.txt"), "secret");
  symlinkSync(join(outside, "secret.txt"), join(folder, "link.txt"));
});
afterAll(() => rmSync(outside, { recursive: true }));

const RULES: AssetRules = {
  html_handling: "auto-trailing-slash",
  not_found_handling: "none",
  run_worker_first: false,
};

async function get(path: string, rules: Partial<AssetRules> = {}, headers: Record<string, string> = {}) {
  const assets = new Assets(folder, { ...RULES, ...rules });
  const response = await assets.fetch(new Request(`http://site${path}`, { headers }));
  return `${response.status} ${response.headers.get("location") ?? (await response.text())}`;
}

test.each([
  ["auto-trailing-slash", "/", "200 home"],
  ["auto-trailing-slash", "/index.html", "307 /"],
  ["auto-trailing-slash", "/about", "200 about"],
  ["auto-trailing-slash", "/about/", "307 /about"],
  ["auto-trailing-slash", "/about.html?x=1", "307 /about?x=1"],
  ["auto-trailing-slash", "/docs", "307 /docs/"],
  ["auto-trailing-slash", "/docs/", "200 docs"],
  ["auto-trailing-slash", "/docs/index", "307 /docs/"],
  ["auto-trailing-slash", "/both", "200 plain"],
  ["auto-trailing-slash", "/both/", "200 index"],
  ["auto-trailing-slash", "/with%20space.html", "307 /with%20space"],
  ["auto-trailing-slash", "/with%20space", "200 space"],
  ["force-trailing-slash", "/about", "307 /about/"],
  ["force-trailing-slash", "/about/", "200 about"],
  ["drop-trailing-slash", "/docs/", "307 /docs"],
  ["drop-trailing-slash", "/docs", "200 docs"],
  ["drop-trailing-slash", "/", "200 home"],
  ["none", "/about", "404 "],
  ["none", "/about.html", "200 about"],
  ["none", "/", "404 "],
] as const)("with %s, %s answers %s", async (handling, path, answer) => {
  expect(await get(path, { html_handling: handling })).toBe(answer);
});

test("missing paths answer as not_found_handling says", async () => {
  expect(await get("/x/y")).toBe("404 ");
  expect(await get("/x/y", { not_found_handling: "404-page" })).toBe("404 gone");
  expect(await get("/a/b/c", { not_found_handling: "404-page" })).toBe("404 a gone");
  expect(await get("/x/y", { not_found_handling: "single-page-application" })).toBe("200 home");
});

test("no path leads out of the folder", async () => {
  for (const path of [
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/a/..%5c..%5csecret.txt",
    "/link.txt",
  ])
    expect(await get(path), path).toBe("404 ");
  for (const path of ["/_headers", "/%00", "/%ff", `/${"x".repeat(5000)}`])
    expect(await get(path), path).toBe("404 ");
});

test("what is not part of the site is not found: control files, server code, names with a dot, what .assetsignore lists", async () => {
  for (const path of [
    "/_headers",
    "/.assetsignore",
    "/_worker.js",
    "/_Worker.js",
    "/hidden/_worker.js/index.js",
    "/.dev.vars",
    "/%2edev.vars",
    "/.git/config",
    "/a/.git/config",
    "/notes/draft.txt",
    "/NOTES/draft.txt",
    "/hidden/deep/file.map",
  ])
    expect(await get(path), path).toBe("404 ");
  expect(await get("/.well-known/security.txt")).toBe("200 contact");
  expect(await get("/notes/public.txt")).toBe("200 notes");
  expect(await get("/a/_worker.js")).toBe("200 a page's script");
  const spa = { not_found_handling: "single-page-application" } as const;
  expect(await get("/.dev.vars", spa)).toBe("200 home");
});

test("types, etags and ranges", async () => {
  const assets = new Assets(folder, RULES);
  const fetch = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    assets.fetch(new Request(`http://site${path}`, { method, headers }));
  const script = await fetch("/app.js");
  expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  const etag = script.headers.get("etag") ?? "";
  expect((await fetch("/app.js", { "if-none-match": `"x", W/${etag}` })).status).toBe(304);
  expect((await fetch("/app.js", { "if-none-match": '"x"' })).status).toBe(200);
  const part = await fetch("/digits.txt", { range: "bytes=2-4" });
  expect([part.status, part.headers.get("content-range"), await part.text()]).toEqual([
    206,
    "bytes 2-4/10",
    "234",
  ]);
  expect((await fetch("/digits.txt", { range: "bytes=10-" })).status).toBe(416);
  expect(await (await fetch("/digits.txt", { range: "bytes=2-4", "if-range": '"old"' })).text()).toBe(
    "0123456789",
  );
  const head = await fetch("/digits.txt", {}, "HEAD");
  expect([head.headers.get("content-length"), await head.text()]).toEqual(["10", ""]);
  expect(await (await fetch("/empty.txt")).text()).toBe("");
  expect((await fetch("/app.js", {}, "POST")).status).toBe(405);
});

test("the worker is asked before or after the files, as run_worker_first says", async () => {
  const answer = async (path: string, rules: Partial<AssetRules>, headers: Record<string, string> = {}) => {
    const response = await new Assets(folder, { ...RULES, ...rules }).answer(
      new Request(`http://site${path}`, { headers }),
    );
    return response === null ? "worker" : response.text();
  };
  expect(await answer("/app.js", {})).toBe("code");
  expect(await answer("/api/x", {})).toBe("worker");
  expect(await answer("/app.js", { run_worker_first: true })).toBe("worker");
  const patterns = { run_worker_first: ["/app*", "!/app.js", "/about"] };
  expect(await answer("/app.js", patterns)).toBe("code");
  expect(await answer("/about", patterns)).toBe("worker");
  const guarded = { run_worker_first: ["/admin/*", "/caf%C3%A9/*"] };
  for (const path of [
    "/admin/data.txt",
    "/%61dmin/data.txt",
    "/admi%6e/data.txt",
    "/admin%2fdata.txt",
    "/caf%c3%a9/x",
  ])
    expect(await answer(path, guarded), path).toBe("worker");
  expect(await answer("/admin%2fdata.txt", {})).toBe("worker");
  expect(await answer("/%61pp.js", guarded)).toBe("code");
  const spa = { not_found_handling: "single-page-application" } as const;
  expect(await answer("/api/x", spa)).toBe("worker");
  expect(await answer("/deep/link", spa, { "sec-fetch-mode": "navigate" })).toBe("home");
});

test("a range is inside the file, or is ignored, or cannot be satisfied", () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(), fc.nat(), fc.nat(1000), (noise, a, b, size) => {
      for (const header of [noise, `bytes=${a}-${b}`, `bytes=${a}-`, `bytes=-${b}`]) {
        const range = parseRange(header, size);
        if (range === null || range === "unsatisfiable") continue;
        expect(range.start).toBeGreaterThanOrEqual(0);
        expect(range.end).toBeGreaterThanOrEqual(range.start);
        expect(range.end).toBeLessThan(size);
      }
    }),
  );
});
