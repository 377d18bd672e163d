import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createMissingBinding } from "./missing-bindings.ts";
import { findWranglerFile, readWranglerFile } from "./wrangler-file.ts";

const folder = mkdtempSync(join(tmpdir(), "wrangler-"));
afterAll(() => rmSync(folder, { recursive: true }));

function read(name: string, text: string) {
  const path = join(folder, name);
  writeFileSync(path, text);
  return readWranglerFile(path, folder);
}

const JSONC = `{
  // A worker.
  "name": "shop", "main": "src/server.ts", "compatibility_date": "2026-01-28",
  "durable_objects": { "bindings": [
    { "name": "Cart", "class_name": "CartObject" },
    { "name": "FOREIGN", "class_name": "X", "script_name": "other" },
  ] },
  "workflows": [{ "name": "pay", "binding": "PAY", "class_name": "PayWorkflow" }],
  "ai": { "binding": "AI", "remote": true },
  "vars": { "MODE": "test", "LIMITS": { "a": [1] } },
  "triggers": { "crons": ["*/5 * * * *"] },
  "kv_namespaces": [{ "binding": "CACHE", "id": "x" }],
  "browser": { "binding": "BROWSER" },
  "queues": { "producers": [{ "binding": "JOBS", "queue": "jobs" }] },
  "services": [{ "binding": "SELF", "service": "shop", "entrypoint": "Inner" }],
}`;

test("bindings, variables, crons and rules of a jsonc file are read", () => {
  const settings = read("wrangler.jsonc", JSONC);
  expect(settings).toMatchObject({
    folder,
    objects: [{ binding: "Cart", className: "CartObject" }],
    workflows: [{ binding: "PAY", className: "PayWorkflow" }],
    ai: "AI",
    vars: { MODE: "test", LIMITS: { a: [1] } },
    crons: ["*/5 * * * *"],
    services: [{ binding: "SELF", entrypoint: "Inner" }],
  });
  expect(settings.missing.map(({ binding, kind }) => `${binding} ${kind}`)).toEqual([
    "CACHE kv namespace",
    "JOBS queue",
    "BROWSER browser",
  ]);
  expect(settings.foreign).toEqual({
    objects: [{ binding: "FOREIGN", className: "X", script: "other" }],
    workflows: [],
    services: [],
  });
});

test("the strategy of code updates is a delay", () => {
  const delayOf = (strategy: object) =>
    read("update.json", JSON.stringify({ durable_objects: { code_update_strategy: strategy } }))
      .updateDelayMs;
  expect(read("update.json", "{}").updateDelayMs).toBe(undefined);
  expect(delayOf({ mode: "immediate" })).toBe(0);
  expect(delayOf({ mode: "deferred" })).toBe(300_000);
  expect(delayOf({ mode: "deferred", max_delay: 0.5 })).toBe(500);
  for (const strategy of [{ mode: "later" }, { mode: "deferred", max_delay: 86_401 }])
    expect(() => delayOf(strategy)).toThrow(/update\.json: durable_objects\.code_update_strategy/);
});

test("a toml file means the same", () => {
  const settings = read(
    "wrangler.toml",
    `name = "shop"
[vars]
MODE = "test"
[[durable_objects.bindings]]
name = "Cart"
class_name = "CartObject"
[assets]
directory = "public"
not_found_handling = "single-page-application"`,
  );
  expect(settings.objects).toEqual([{ binding: "Cart", className: "CartObject" }]);
  expect(settings.assets).toMatchObject({
    directory: "public",
    not_found_handling: "single-page-application",
    html_handling: "auto-trailing-slash",
    run_worker_first: false,
  });
});

test("an unreadable file is refused in one line with its path and the reason", () => {
  expect(() => read("wrangler.json", "{ broken")).toThrow(/wrangler\.json: cannot be read: .*JSON/);
  expect(() => read("wrangler.toml", "= 1")).toThrow(/^[^\n]*wrangler\.toml: cannot be read: [^\n]*$/);
  expect(() => read("wrangler.json", '{"durable_objects":{"bindings":[{"name":1}]}}')).toThrow(
    /wrangler\.json: durable_objects\.bindings\.0\.name: /,
  );
});

test("the file is found beside the entry or above it", () => {
  mkdirSync(join(folder, "app/src"), { recursive: true });
  writeFileSync(join(folder, "app/wrangler.jsonc"), "{}");
  expect(findWranglerFile(join(folder, "app/src/server.ts"), folder)).toBe(
    join(folder, "app/wrangler.jsonc"),
  );
  rmSync(join(folder, "app/wrangler.jsonc"));
  rmSync(join(folder, "wrangler.json"));
  rmSync(join(folder, "wrangler.jsonc"));
  rmSync(join(folder, "wrangler.toml"));
  expect(findWranglerFile(join(folder, "app/src/server.ts"), folder)).toBeNull();
});

test("a binding that is not available throws by name when it is used, and not when it is looked at", async () => {
  const binding = createMissingBinding({ binding: "CACHE", kind: "kv namespace" }) as {
    get: (key: string) => unknown;
  };
  expect("idFromName" in binding).toBe(false);
  expect(JSON.stringify({ binding })).toBe("{}");
  await Promise.resolve(binding);
  expect(() => binding.get("x")).toThrow("binding CACHE (kv namespace) is not available on Signalbox");
  expect(() => (binding as unknown as () => void)()).toThrow(/CACHE/);
});
