/** Objects of a worker on a full disk: calls that write fail, what was answered stays, alarms ring when there is space. */
import { join } from "node:path";
import { tmpdir } from "node:os";
import { afterEach, beforeEach, expect, it } from "vitest";
import { awakeSignal } from "../../packages/signalbox/src/core/awake-time.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openSmallDisk, type SmallDisk } from "../support/small-disk.ts";

const PROGRAM = join(import.meta.dirname, "../worker/programs/hostile/src/server.ts");
/** The smallest allowed size, so that the disk fills up at the writes of objects. */
const CONFIG = { agents: { access: "worker" as const, journalFileBytes: 64 * 1024, idleTimeoutMs: 200 } };

/** A call that has written before the disk was full is answered when there is space; its caller gives up. */
const PATIENCE_MS = 5000;

let disk: SmallDisk;
let server: ServerProcess;

beforeEach(async () => {
  disk = await openSmallDisk(24);
  await disk.write("config.json", JSON.stringify(patiently(CONFIG)));
  server = await start();
});
afterEach(async () => {
  await server.kill();
  await disk.drop();
});

function start(): Promise<ServerProcess> {
  return startServerProcess(
    ["--data-dir", `${disk.folder}/data`, "--config", `${disk.folder}/config.json`, "--worker", PROGRAM],
    { env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN }, cwd: tmpdir(), through: disk.through },
  );
}

interface Answer {
  readonly value?: unknown;
  readonly error?: string;
}

async function ask(
  name: string,
  method: string,
  args: readonly unknown[],
  signal: AbortSignal | null = null,
): Promise<Answer> {
  const query = new URLSearchParams({ args: JSON.stringify(args) });
  const response = await fetch(`${server.url}/${name}/${method}?${String(query)}`, { signal });
  return (await response.json()) as Answer;
}

it("keeps what was answered, refuses the rest, and goes on by itself, also after kill -9", async () => {
  const kept = new Map<string, number>();
  let count = 0;
  /** Writes to one of three objects; true if the call was answered. */
  const write = async (signal: AbortSignal | null = null): Promise<boolean> => {
    count += 1;
    const name = `o${count % 3}`;
    const version = count;
    // A new key each time: what replaces a value may fit into the space that the files have.
    const args = [`v${version}`, { version, pad: "x".repeat(2000) }];
    const { error } = await ask(name, "put", args, signal).catch((reason: unknown): Answer => ({
      error: String(reason),
    }));
    if (error === undefined) kept.set(name, version);
    return error === undefined;
  };
  const tryToWrite = () => write(awakeSignal(PATIENCE_MS));
  const expectKept = async () => {
    for (const [name, version] of kept) {
      expect(await ask(name, "read", [`v${version}`])).toMatchObject({ value: { version } });
    }
  };
  for (let i = 0; i < 9; i += 1) expect(await write()).toBe(true);
  await ask("ringing", "arm", [1500]);

  await disk.fill();
  await expect.poll(tryToWrite, { interval: 1 }).toBe(false);
  for (let i = 0; i < 3; i += 1) await tryToWrite();
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(503);

  await disk.makeRoom();
  await expect.poll(tryToWrite).toBe(true);
  await expectKept();
  await expect.poll(() => ask("ringing", "read", ["rang"])).toEqual({ value: true });

  await disk.fill();
  await expect.poll(tryToWrite, { interval: 1 }).toBe(false);
  await server.end("SIGKILL");
  await disk.makeRoom();
  server = await start();
  await expectKept();
  expect(await write()).toBe(true);
});
