import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "./config.ts";
import { configOfProcess, countProcesses } from "./processes.ts";
import { checkCluster } from "./shared-secrets.ts";

const COMPLETE = {
  SIGNALBOX_CLUSTER_SECRET: "s".repeat(32),
  DATABASE_URL: "postgres://127.0.0.1/x",
  SIGNALBOX_ROOT_TOKEN: "r".repeat(20),
  SIGNALBOX_ENCRYPTION_KEY: "e".repeat(32),
  SIGNALBOX_MASTER_KEY: "ab".repeat(32),
  WEBHOOK_SECRET: "w",
};
const load = (environment: Record<string, string>, flags = {}) => loadConfig(flags, environment, tmpdir());

describe("the settings of a cluster", () => {
  it("has no cluster without the secret", async () => {
    const config = await load({ SIGNALBOX_CLUSTER_HOST: "10.0.0.1", SIGNALBOX_CLUSTER_SECRET: "" });
    expect(config.cluster).toBe(null);
    expect(() => checkCluster(config)).not.toThrow();
  });

  it("listens where the service listens, on a free port, unless a flag says otherwise", async () => {
    const { cluster, file } = await load(COMPLETE);
    expect(cluster).toMatchObject({ host: "127.0.0.1", port: 0, advertisedHost: "127.0.0.1" });
    expect(file.cluster).toEqual({ maxStaleMs: 30_000, deadAfterMs: 2500, processes: 1, tls: false });
    const flags = { clusterHost: "10.0.0.7", clusterPort: "7000", nodeName: "a" };
    const given = await load({ ...COMPLETE, SIGNALBOX_CLUSTER_PORT: "1" }, flags);
    expect(given).toMatchObject({ nodeName: "a", cluster: { host: "10.0.0.7", port: 7000 } });
  });

  it("tells other nodes an address that they can reach, in place of a wildcard", async () => {
    const { cluster } = await load({ ...COMPLETE, HOST: "0.0.0.0" });
    expect(cluster?.host).toBe("0.0.0.0");
    expect(cluster?.advertisedHost).toMatch(/^(?!0\.0\.0\.0)[\d.a-f:]+$/);
  });

  it.each([
    [
      { SIGNALBOX_CLUSTER_SECRET: "short" },
      "SIGNALBOX_CLUSTER_SECRET: expected at least 32 characters, found 5",
    ],
    [{ SIGNALBOX_CLUSTER_PORT: "x" }, 'SIGNALBOX_CLUSTER_PORT: expected a number from 0 to 65535, found "x"'],
    [{ SIGNALBOX_PROCESSES: "0" }, 'SIGNALBOX_PROCESSES: expected auto or a number from 1 to 256, found "0"'],
    [{ SIGNALBOX_NODE_NAME: "a b" }, "--node-name: expected at most 64 printable ASCII characters"],
  ])("refuses %j", async (environment, message) => {
    await expect(load({ ...COMPLETE, ...environment })).rejects.toThrow(message);
  });

  it.each(Object.keys(COMPLETE).slice(1))("requires %s", async (variable) => {
    const config = await load({ ...COMPLETE, [variable]: "" });
    expect(() => checkCluster(config)).toThrow(variable);
  });

  it("is complete with all of them", async () => {
    const config = await load(COMPLETE);
    expect(() => checkCluster(config)).not.toThrow();
  });
});

describe("the number of processes", () => {
  const count = async (environment: Record<string, string>, processes?: string) =>
    countProcesses(await load(environment, { processes }));

  it("is one unless it is set; the option precedes the variable", async () => {
    expect(await count(COMPLETE)).toBe(1);
    expect(await count({ ...COMPLETE, SIGNALBOX_PROCESSES: "3" })).toBe(3);
    expect(await count({ ...COMPLETE, SIGNALBOX_PROCESSES: "3" }, "2")).toBe(2);
  });

  it("auto is one per core with PostgreSQL and a cluster secret, otherwise one", async () => {
    expect(await count(COMPLETE, "auto")).toBe(availableParallelism());
    expect(await count({}, "auto")).toBe(1);
    expect(await count({ ...COMPLETE, SIGNALBOX_CLUSTER_SECRET: "" }, "auto")).toBe(1);
  });

  it("above one needs PostgreSQL and the secret, and says so", async () => {
    await expect(count({}, "2")).rejects.toThrow(
      "2 processes need DATABASE_URL (PostgreSQL) and SIGNALBOX_CLUSTER_SECRET, found none; one process uses embedded SQLite",
    );
    await expect(count({ ...COMPLETE, SIGNALBOX_CLUSTER_SECRET: "" }, "2")).rejects.toThrow(
      "2 processes need SIGNALBOX_CLUSTER_SECRET, found none",
    );
  });

  it("gives each process a folder, a name and a cluster port of its own; commands use the common folder", async () => {
    const config = await load(COMPLETE, { nodeName: "n".repeat(64), clusterPort: "7000", dataDir: "/x" });
    expect(configOfProcess(config, { number: 12 })).toMatchObject({
      dataDir: join("/x", "process-12"),
      commandDataDir: "/x",
      nodeName: `${"n".repeat(61)}-12`,
      cluster: { port: 7011 },
      port: 8787,
    });
    const free = configOfProcess(await load(COMPLETE), { number: 2, port: 4711 });
    expect(free).toMatchObject({ port: 4711, cluster: { port: 0 } });
  });
});
