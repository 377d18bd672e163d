/**
 * `npm run keep`: starts this version on a new data folder and on a new PostgreSQL, writes a small account, and keeps both in
 * test/fixtures/kept/<version>, where test/cluster/kept-versions.long.test.ts starts every later version on them. Part of a release.
 */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sendJson, startProvider } from "../test/peers/provider.ts";
import { writeDataSet } from "../test/support/kept/data-set.ts";
import { keep, packFolder } from "../test/support/kept/kept-files.ts";
import {
  ENGINES,
  type Engine,
  keptArguments,
  keptEnvironment,
  startKeptNode,
} from "../test/support/kept/kept-node.ts";
import { inBoth, readAll } from "../test/support/kept/reads.ts";
import { runCliProcess } from "../test/support/server-process.ts";
import { openTestPostgres } from "../test/support/test-postgres.ts";
import { packageFolder, readManifest } from "./packages/published.ts";

const HOUR_MS = 3_600_000;

const { version } = readManifest(packageFolder("signalbox"));
for (const engine of ENGINES)
  console.log(`kept ${version} on ${engine}: ${Math.ceil((await keepOn(engine)) / 1024)} KB`);

async function keepOn(engine: Engine): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-keep-"));
  const provider = await startProvider((_, response) =>
    sendJson(response, 200, { model: "kept", usage: { prompt_tokens: 2, completion_tokens: 3 } }),
  );
  const postgres = engine === "postgres" ? await openTestPostgres() : null;
  try {
    const dataDir = join(folder, "data");
    const databaseUrl = postgres?.url ?? null;
    const options = { engine, folder, dataDir, databaseUrl, providerUrl: provider.url, at: null };
    const first = await startKeptNode(options);
    const { token, reads } = await writeDataSet(first.url);
    const before = await readAll(first.url, reads);
    await stop(first);
    const at = Date.now();
    const tar =
      engine === "sqlite" ? packFolder(dataDir) : await backup(engine, folder, await keptArguments(options));
    // What this version itself does not answer alike an hour later (times of use, figures of the last minutes) is nothing that a later version has to find.
    const second = await startKeptNode({ ...options, at: at + HOUR_MS });
    const after = await readAll(second.url, reads);
    await stop(second);
    const compared = before.map(({ answer, ...read }, i) => ({
      ...read,
      answer: inBoth(answer, after[i]?.answer),
    }));
    const lost = compared.find(({ answer }) => answer === undefined);
    if (lost !== undefined) throw new Error(`nothing stays of ${lost.path}`);
    return keep({ version, engine }, { version, at, token, reads: compared }, tar);
  } finally {
    await provider.close();
    await postgres?.drop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function stop(node: Awaited<ReturnType<typeof startKeptNode>>): Promise<void> {
  const code = await node.end("SIGTERM");
  if (code !== 0) throw new Error(`the server ended with ${code}: ${node.stderr()}`);
}

async function backup(engine: Engine, folder: string, args: readonly string[]): Promise<Buffer> {
  const file = join(folder, "backup.tar");
  const { code, stderr } = await runCliProcess(["backup", file, ...args], { env: keptEnvironment(engine) });
  if (code !== 0) throw new Error(`backup: ${stderr}`);
  return readFileSync(file);
}
