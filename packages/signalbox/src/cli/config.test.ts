import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCli } from "./main.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-config-"));
  const file = {
    gateway: { cacheBytes: 0, logs: { maxAgeDays: 30 } },
    agents: { stores: ["postgres://user:hidden-1@host/db"] },
  };
  writeFileSync(join(folder, "signalbox.config.json"), JSON.stringify(file));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function print(args: readonly string[], environment: Record<string, string> = {}) {
  let out = "";
  const output = { write: (text: string) => (out += text) };
  const code = await runCli(["config", ...args], {
    out: output,
    err: output,
    environment,
    workingFolder: folder,
  });
  return { code, out };
}

it("names the origin of each value, also of one that equals its default", async () => {
  const { code, out } = await print(["--json", "--port", "9", "--agents", "a.ts"], { HOST: "::1" });
  expect(code).toBe(0);
  const found = new Map((JSON.parse(out) as { name: string }[]).map((setting) => [setting.name, setting]));
  expect(found.get("port")).toEqual({ name: "port", value: 9, origin: "option" });
  expect(found.get("host")).toEqual({ name: "host", value: "::1", origin: "environment" });
  expect(found.get("log-level")).toEqual({ name: "log-level", value: "info", origin: "default" });
  expect(found.get("gateway.cacheBytes")).toMatchObject({ value: 0, origin: "file" });
  expect(found.get("gateway.logs.maxAgeDays")).toMatchObject({ value: 30, origin: "file" });
  expect(found.get("gateway.logs.flushIntervalMs")).toMatchObject({ value: 200, origin: "default" });
  expect(found.get("agents.modules")).toMatchObject({ value: ["a.ts"], origin: "option" });
});

it("shows no secret, and with --changed no default", async () => {
  const secrets = {
    SIGNALBOX_ROOT_TOKEN: "hidden-hidden-hidden-hidden",
    DATABASE_URL: "postgres://user:hidden-2@host/db",
  };
  const { out } = await print(["--changed"], secrets);
  expect(out).not.toContain("hidden-");
  expect(out).toMatch(/root token\s+\[secret\]\s+environment/);
  expect(out).toMatch(/agents\.stores\s+\["\[secret\]"\]\s+file/);
  expect(out).not.toContain("default");
});
