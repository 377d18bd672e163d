/** The instances of one process become those of a cluster. */
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CLUSTER_ENVIRONMENT, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { runCliProcess, startServerProcess } from "../support/server-process.ts";
import { sendRequest } from "../support/send-request.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODULE = join(import.meta.dirname, "../fixtures/moving-agent.ts");
const NAMES = Array.from({ length: 9 }, (_, i) => `old-${i}`);

let postgres: TestPostgres;
let cluster: TestCluster | undefined;
let folder: string;

beforeAll(async () => {
  postgres = await openTestPostgres();
  folder = await mkdtemp(join(tmpdir(), "signalbox-alone-"));
});
afterAll(async () => {
  await cluster?.stop();
  await postgres.drop();
  await rm(folder, { recursive: true, force: true });
});

const importFrom = (path: string) =>
  runCliProcess(["agents", "import", path, "--database-url", postgres.url, "--json"], {
    env: CLUSTER_ENVIRONMENT,
  });
const startAlone = () =>
  startServerProcess(["--data-dir", folder, "--agents", MODULE], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });

it("a folder is imported when no process uses it, once, with state, SQL and schedules", async () => {
  const alone = await startAlone();
  const call = async (name: string, method: string, ...args: unknown[]) => {
    const { status } = await sendRequest(alone, "POST", `/agents/moving-agent/${name}/rpc/${method}`, args);
    expect(status).toBe(200);
  };
  for (const [i, name] of NAMES.entries()) for (let n = 0; n <= i; n++) await call(name, "add");
  await call("old-0", "ringAfter", 1);
  const inUse = await importFrom(folder);
  expect(inUse.code).toBe(1);
  expect(inUse.stderr).toContain("is in use by the process");
  // The journal has what is not in the files.
  await alone.kill();
  const first = await importFrom(folder);
  expect(JSON.parse(first.stdout)).toMatchObject({ imported: NAMES.length, kept: 0, failed: [] });
  expect(await readdir(folder)).toContain("agents-imported");
  expect((await importFrom(folder)).stderr).toContain("has no instances to import");
});

it("an import that is repeated changes nothing, and a damaged file is named and left out", async () => {
  const again = await mkdtemp(join(tmpdir(), "signalbox-again-"));
  await cp(join(folder, "agents-imported"), join(again, "agents"), { recursive: true });
  const repeated = await importFrom(again);
  expect(JSON.parse(repeated.stdout)).toMatchObject({ imported: 0, kept: NAMES.length, failed: [] });
  await cp(join(folder, "agents-imported"), join(again, "agents"), { recursive: true });
  await writeFile(join(again, "agents", "00", `${"0".repeat(40)}.db`), "not a database");
  const damaged = await importFrom(again);
  expect(damaged.code).toBe(1);
  expect(JSON.parse(damaged.stdout)).toMatchObject({ imported: 0, kept: NAMES.length, renamedTo: null });
  expect(JSON.parse(damaged.stdout).failed).toHaveLength(1);
  await rm(again, { recursive: true });
});

it("a node does not start on a folder with instances that were not imported, and has them after the import", async () => {
  cluster = await startTestCluster({ nodes: 1, postgres, args: ["--agents", MODULE] });
  const left = await mkdtemp(join(tmpdir(), "signalbox-left-"));
  await cp(join(folder, "agents-imported"), join(left, "agents"), { recursive: true });
  const refused = await cluster.refused({ dataDir: left });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('import them with "signalbox agents import"');
  await rm(left, { recursive: true });
  const [node] = cluster.nodes;
  if (node === undefined) throw new Error("there is no node");
  const read = async (name: string) =>
    (await node.api("POST", `/agents/moving-agent/${name}/rpc/read`, [])).body.result;
  for (const [i, name] of NAMES.entries()) {
    const steps = Array.from({ length: i + 1 }, (_, n) => n + 1);
    expect(await read(name)).toMatchObject({ count: i + 1, steps });
  }
  expect(
    await waitUntil(
      () => read("old-0"),
      ({ rang }) => rang > 0,
    ),
  ).toMatchObject({ rang: 1 });
  // A process that was alone and had no instances leaves empty folders.
  await mkdir(join(left, "agents", "journal"), { recursive: true });
  await cluster.join({ dataDir: left });
  const listed = await node.api("GET", "/accounts/default/agents/moving-agent/instances");
  expect(listed.body.result).toHaveLength(NAMES.length);
});
