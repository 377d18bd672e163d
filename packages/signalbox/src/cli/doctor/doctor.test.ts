/** The judgement of each check, on facts and folders of the test. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../config/index.ts";
import type { PostgresFacts } from "../../database/postgres/inspect.ts";
import { runCli } from "../main.ts";
import { makeCertificate } from "../../../../../test/support/test-certificate.ts";
import { checkCertificate } from "./certificate.ts";
import { checkDataFolder } from "./data-folder.ts";
import type { Finding, Patient } from "./finding.ts";
import { judge } from "./postgres.ts";
import { checkSecrets, weaknessOf } from "./secrets.ts";
import { checkExposure, checkSettings } from "./settings.ts";
import { judgeCores } from "./cores.ts";
import { checkClock, openFileLimit } from "./system.ts";

let folder: string;
let dataDir: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-doctor-"));
  dataDir = join(folder, ".signalbox");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function patient(flags: object = {}, environment: Record<string, string> = {}): Promise<Patient> {
  const config = await loadConfig(flags, environment, folder);
  return { config, environment, dataDir, databaseUrls: [], workingFolder: folder, envFile: undefined };
}

const problems = (findings: readonly Finding[]) =>
  findings.filter(({ status }) => status !== "ok").map(({ status, message }) => `${status}: ${message}`);

async function run(args: readonly string[], environment: Record<string, string> = {}) {
  let out = "";
  let err = "";
  const code = await runCli(["doctor", ...args], {
    out: { write: (text) => (out += text) },
    err: { write: (text) => (err += text) },
    environment,
    workingFolder: folder,
  });
  return { code, out, err };
}

describe("settings", () => {
  it("an invalid setting fails, and everything else is still checked", async () => {
    writeFileSync(join(folder, "signalbox.config.json"), '{"listner":{}}');
    const { code, out, err } = await run(["--json"], { DATABASE_URL: "postgres://127.0.0.1:9/x" });
    const { status, checks } = JSON.parse(out) as { status: string; checks: Finding[] };
    expect([code, err, status]).toEqual([1, "", "fail"]);
    expect(checks.map(({ check }) => check)).toEqual(expect.arrayContaining(["disk", "node", "clock"]));
    expect(problems(checks)).toEqual(
      expect.arrayContaining([
        expect.stringContaining('unknown key "listner", did you mean "listener"?'),
        expect.stringMatching(/^fail: 127\.0\.0\.1:9\/x: .*ECONNREFUSED/),
      ]),
    );
    for (const { status: one, remedy } of checks) expect(remedy === null).toBe(one === "ok");
  });

  it("mistyped variables and keys in the configuration are reported, without the key", async () => {
    writeFileSync(
      join(folder, "signalbox.config.json"),
      '{"agents":{\n"modules":["sk-proj-0123456789abcdef"]}}',
    );
    const findings = checkSettings(
      await patient(
        {},
        {
          SIGNALBOX_ROOT_TOKN: "x",
          SIGNALBOX_TLS_CRT: "x",
          SIGNALBOX_RESTARTED: "1",
          SIGNALBOX_WEATHER: "x",
        },
      ),
      null,
    );
    expect(problems(findings)).toEqual([
      "warn: the variable SIGNALBOX_ROOT_TOKN has no meaning",
      "warn: the variable SIGNALBOX_TLS_CRT has no meaning",
      `warn: ${join(folder, "signalbox.config.json")}:2 seems to contain a key of a provider in plain text`,
    ]);
    expect(JSON.stringify(findings)).not.toContain("0123456789");
  });

  it("an address of the network without TLS is reported", async () => {
    expect(problems(checkExposure(await patient()))).toEqual([]);
    const open = checkExposure(
      await patient({ host: "0.0.0.0", metricsPublic: true, agentsAccess: "public" }),
    );
    expect(problems(open)).toEqual([
      "warn: other machines can connect to 0.0.0.0 without TLS: tokens are readable on the network",
      "warn: /metrics needs no token",
      'warn: agents.access is "public": everybody can call every agent',
    ]);
    writeFileSync(
      join(folder, "signalbox.config.json"),
      '{"listener":{"publicUrl":"https://ai.example.com"}}',
    );
    expect(problems(checkExposure(await patient({ host: "0.0.0.0" })))).toEqual([]);
  });

  it("a certificate, by option or variable, is TLS; what is wrong with it or its key is reported", async () => {
    const { cert, key } = makeCertificate(folder, "own", "DNS:ai.example.com");
    const environment = { SIGNALBOX_TLS_CERT: cert, SIGNALBOX_TLS_KEY: key };
    const given = await patient({ host: "0.0.0.0" }, environment);
    expect(checkExposure(given)).toMatchObject([
      { status: "ok", message: "other machines can connect to 0.0.0.0, with TLS" },
    ]);
    chmodSync(key, 0o640);
    expect(checkCertificate(given)).toMatchObject([
      { status: "ok", message: `${cert} is for DNS:ai.example.com and expires in 29 days` },
    ]);
    chmodSync(key, 0o644);
    const day = 86_400_000;
    expect(problems(checkCertificate(given, Date.now() + 20 * day))).toEqual([
      `warn: ${cert} is for DNS:ai.example.com and expires in 9 days`,
      `fail: ${key} is readable by all users (mode 644)`,
    ]);
    expect(problems(checkCertificate(given, Date.now() + 40 * day))).toEqual([
      expect.stringMatching(/^fail: .*own\.crt expired on \d{4}-\d\d-\d\d$/),
    ]);
    expect(checkCertificate(await patient())).toEqual([]);
  });
});

describe("secrets", () => {
  it.each([
    ["0f5b1c9e7a3d4826b1c07e5fa9d3486e", null],
    ["", null],
    ["short", "5 characters, at least 24 are expected"],
    ["a".repeat(40), "it repeats a few characters"],
    ["my-root-token-0f5b1c9e7a3d4826b1", "it contains a common word"],
  ])("%j: %j", (secret, weakness) => {
    expect(weaknessOf(secret)).toBe(weakness);
  });

  it("weak variables and readable files are reported, never their content", async () => {
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, "root-token"), "sbx_hidden");
    chmodSync(join(dataDir, "root-token"), 0o644);
    const environment = {
      WEBHOOK_SECRET: "hush-hush",
      GITHUB_WEBHOOK_SECRET: "0f5b1c9e7a3d4826b1c07e5fa9d3486e",
    };
    const findings = checkSecrets(await patient({}, environment));
    expect(problems(findings)).toEqual([
      "warn: WEBHOOK_SECRET is weak: 9 characters, at least 24 are expected",
      `fail: ${join(dataDir, "root-token")} is readable by other users (mode 644)`,
    ]);
    expect(JSON.stringify(findings)).not.toMatch(/hush|hidden/);
  });
});

describe("the data folder", () => {
  it("may be missing, but not a file or in use by others", async () => {
    const given = await patient();
    const ofMachine = /disk|in memory/;
    expect(problems(checkDataFolder(given)).filter((line) => !ofMachine.test(line))).toEqual([]);
    mkdirSync(dataDir, { mode: 0o755 });
    chmodSync(dataDir, 0o755);
    writeFileSync(join(dataDir, "stranger"), "");
    utimesSync(join(dataDir, "stranger"), new Date(), new Date(Date.now() + 3_600_000));
    expect(problems(checkDataFolder(given))).toEqual(
      expect.arrayContaining([
        `warn: other users can look into ${dataDir} (mode 755)`,
        `warn: ${dataDir} has files, but none of Signalbox`,
        expect.stringMatching(/in the future: the clock was set back$/),
      ]),
    );
    const file = join(dataDir, "stranger");
    expect(problems(checkDataFolder({ ...given, dataDir: file }))).toEqual([`fail: ${file} is not a folder`]);
    expect(problems(checkDataFolder({ ...given, dataDir: join(file, "below") }))).toEqual([
      `fail: ${join(file, "below")} does not exist, and ${file} is not writable`,
    ]);
  });
});

describe("PostgreSQL", () => {
  const facts: PostgresFacts = {
    address: "db.example.com:5432/signalbox",
    version: "17.2",
    versionNumber: 170_002,
    isStandby: false,
    isEncrypted: true,
    canCreate: true,
    skewMs: 3,
    uncertaintyMs: 2,
    maxConnections: 97,
    usedConnections: 5,
    neededConnections: 14,
    settings: [],
    schema: { newest: 41, known: 41, unusable: [] },
  };
  it("that is as it should be is described", () => {
    expect(judge(facts)).toMatchObject([
      { status: "ok", message: "db.example.com:5432/signalbox, PostgreSQL 17.2, schema 41" },
    ]);
    expect(judge({ ...facts, schema: { newest: 40, known: 41, unusable: [] } })[0]?.message).toContain(
      "the next start updates it to 41",
    );
  });
  it.each<[string, Partial<PostgresFacts>]>([
    ["fail: db.example.com:5432/signalbox is PostgreSQL 13.1", { version: "13.1", versionNumber: 130_001 }],
    ["fail: db.example.com:5432/signalbox: the user may not create tables", { canCreate: false }],
    ["warn: db.example.com:5432/signalbox: the connection has no TLS", { isEncrypted: false }],
    ["warn: db.example.com:5432/signalbox: its clock differs by -900 ms", { skewMs: -900 }],
    [
      "warn: db.example.com:5432/signalbox: 2 of 97 connections are free, a node needs up to 14",
      { usedConnections: 95 },
    ],
    [
      "fail: db.example.com:5432/signalbox was written by a newer version (migration 99-x)",
      { schema: { newest: 99, known: 41, unusable: ["99-x"] } },
    ],
    [
      "warn: db.example.com:5432/signalbox: fsync is off: loses",
      { settings: [{ name: "fsync", value: "off", isSafe: false, note: "loses" }] },
    ],
  ])("%s", (line, change) => {
    expect(problems(judge({ ...facts, ...change }))).toEqual([line]);
  });
  it("on this machine needs no TLS", () => {
    expect(problems(judge({ ...facts, address: "127.0.0.1:5432/x", isEncrypted: false }))).toEqual([]);
  });
});

describe("the cores", () => {
  it("a busy event loop on a machine with more cores is told to use them", () => {
    expect(problems(judgeCores({ share: 0.97, cores: 4, isCluster: true }))).toEqual([
      "warn: the event loop of the server uses 97 % of a core, and the machine has 4",
    ]);
    const [alone] = judgeCores({ share: 0.97, cores: 4, isCluster: false });
    expect(alone?.remedy).toMatch(/SIGNALBOX_CLUSTER_SECRET .* --processes auto/);
    expect(problems(judgeCores({ share: 0.4, cores: 4, isCluster: true }))).toEqual([]);
  });
});

describe("the system", () => {
  it("reads the limit of open files", () => {
    const limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files            1024   524288   files\n";
    expect(openFileLimit(limits)).toBe(1024);
    expect(openFileLimit(limits.replace("1024", "unlimited"))).toBe(Infinity);
    expect(openFileLimit(null)).toBeNull();
  });
  it("notices that the clock was set while the checks ran", async () => {
    expect(problems(await checkClock(100, -3_600_000))).toEqual([
      "warn: the clock was set by -3600100 ms while this command ran",
    ]);
  });
});

it("a report is a list with remedies, and 0 if nothing failed", async () => {
  const { code, out } = await run(["--host", "0.0.0.0"]);
  expect(out).toMatch(/^ok {4}settings +defaults, no configuration file\n/);
  expect(out).toMatch(
    /\nwarn {2}exposure +other machines .*\n +→ give a certificate .* or listen on 127\.0\.0\.1 behind a proxy/,
  );
  expect([code, out.trimEnd().split("\n").at(-1)]).toEqual([
    0,
    expect.stringMatching(/^\d+ ok, \d+ to look at, 0 failed$/),
  ]);
});
