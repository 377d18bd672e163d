import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "./config.ts";
import { ConfigError } from "../core/config-error.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-config-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const load = (flags: object = {}, environment: Record<string, string> = {}) =>
  loadConfig(flags, environment, folder);

describe("loadConfig", () => {
  it("has defaults", async () => {
    expect(await load()).toMatchObject({
      host: "127.0.0.1",
      port: 8787,
      admin: null,
      isMetricsPublic: false,
      dataDir: join(folder, ".signalbox"),
      databaseUrl: undefined,
      rootToken: undefined,
      encryptionKeys: [],
      logLevel: "info",
      filePath: null,
    });
  });

  it("prefers flags to the environment and the environment to defaults; an empty variable is not set", async () => {
    const environment = { HOST: "::", PORT: "1", SIGNALBOX_LOG_LEVEL: "warn", SIGNALBOX_DATA_DIR: "" };
    expect(await load({ port: "2", logLevel: "debug" }, environment)).toMatchObject({
      host: "::",
      port: 2,
      logLevel: "debug",
      dataDir: join(folder, ".signalbox"),
    });
  });

  it.each([
    [{ adminPort: "9" }, {}, { host: "127.0.0.1", port: 9 }],
    [{}, { ADMIN_HOST: "10.0.0.1" }, { host: "10.0.0.1", port: 8788 }],
    [{ adminPort: "0", adminHost: "::1" }, { ADMIN_PORT: "5" }, { host: "::1", port: 0 }],
  ])("derives the admin address from %j and %j", async (flags, environment, admin) => {
    expect((await load(flags, environment)).admin).toEqual(admin);
  });

  it("hides secrets when printed", async () => {
    const config = await load(
      {},
      {
        DATABASE_URL: "postgres://user:hidden@host/db",
        SIGNALBOX_ROOT_TOKEN: "hidden-hidden-hidden-hidden",
        SIGNALBOX_ENCRYPTION_KEY: `${"hidden".repeat(6)}, ${"hidden".repeat(7)}`,
      },
    );
    expect(config.encryptionKeys.map((key) => key.reveal().length)).toEqual([36, 42]);
    const { environment: _, ...rest } = config;
    expect(JSON.stringify(rest)).not.toContain("hidden");
  });

  it.each([
    [{ port: "x" }, {}, '--port: expected a number from 0 to 65535, found "x"'],
    [{}, { PORT: "65536" }, 'PORT: expected a number from 0 to 65535, found "65536"'],
    [{}, { ADMIN_PORT: "-1" }, 'ADMIN_PORT: expected a number from 0 to 65535, found "-1"'],
    [{}, { METRICS_PUBLIC: "yes" }, 'METRICS_PUBLIC: expected true or false, found "yes"'],
    [
      { databaseUrl: "mysql://x" },
      {},
      "--database-url (DATABASE_URL): expected postgres://…, found another scheme",
    ],
    [{}, { SIGNALBOX_ROOT_TOKEN: "short" }, "SIGNALBOX_ROOT_TOKEN: expected at least 20 characters, found 5"],
    [
      {},
      { SIGNALBOX_ROOT_TOKEN: "with a space and long enough" },
      "SIGNALBOX_ROOT_TOKEN: expected printable ASCII without spaces, found another character",
    ],
    [
      {},
      { SIGNALBOX_ENCRYPTION_KEY: "short" },
      "SIGNALBOX_ENCRYPTION_KEY: expected at least 32 characters per key, found 5",
    ],
    [{ logLevel: "loud" }, {}, /^--log-level: expected one of trace, .*, found "loud"$/],
  ])("refuses %j with %j", async (flags, environment, message) => {
    const error = await load(flags, environment).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).message).toEqual(
      message instanceof RegExp ? expect.stringMatching(message) : message,
    );
  });

  it("accepts exactly the ports from 0 to 65535", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.nat(70_000).map(String), fc.string()), async (port) => {
        const isPort = /^\d+$/.test(port) && Number(port) <= 65_535;
        const loaded = load({ port }).then(
          (config) => config.port,
          () => null,
        );
        expect(await loaded).toBe(isPort ? Number(port) : null);
      }),
    );
  });
});

describe("the configuration file", () => {
  it("is found in the working folder; modules of flags are added", async () => {
    writeFileSync(
      join(folder, "signalbox.config.json"),
      '{"agents":{"modules":["a.ts"],"idleTimeoutMs":99}}',
    );
    const config = await load({ agents: ["b.ts"] });
    expect(config.filePath).toBe(join(folder, "signalbox.config.json"));
    expect(config.file.agents).toMatchObject({
      modules: ["a.ts", "b.ts"],
      idleTimeoutMs: 99,
      access: "token",
    });
  });

  it.each([
    ["none.json", undefined, /^--config: expected a file, found nothing at .*none\.json$/],
    ["broken.json", "{", /broken\.json: cannot be loaded: /],
    [
      "value.js",
      "const port = 1;\nexport default {\n  gateway: { cache: port },\n};\n",
      /value\.js:3: gateway\.cache: /,
    ],
    // Which of the two is wrong is not known.
    ["twice.json", '{"x1":\n{"x1":1}}', /twice\.json: unknown key "x1"/],
    [
      "empty.js",
      "export const x = 1;",
      /empty\.js: cannot be loaded: no default export; to use module.exports/,
    ],
    ["typo.json", '{"agent":{}}', /typo\.json:1: unknown key "agent", did you mean "agents"\?$/],
    [
      "deep.json",
      '{"listener":{\n"maxConections":1}}',
      /deep\.json:2: unknown key "listener\.maxConections", did you mean "maxConnections"\?$/,
    ],
  ])("%s is refused in one line", async (name, content, message) => {
    if (content !== undefined) writeFileSync(join(folder, name), content);
    const error = await load({ config: name }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).message).toMatch(message);
  });
});
