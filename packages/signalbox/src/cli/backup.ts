/** `signalbox backup …`: a copy of everything, of a running server or of a data folder that no server uses. */
import { constants } from "node:fs";
import { access, link, open, rename, rm, stat } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { dataDirOf } from "../config/data-dir.ts";
import type { Manifest } from "../service/backup/manifest.ts";
import { type Command, type CommandContext, type Output, UsageError } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { CLIENT_OPTIONS } from "./options.ts";
import { findAddress } from "./find-server.ts";
import { isProcessOutput, OutputClosedError } from "./output.ts";
import { untilInterrupted } from "./stop-signal.ts";

const STDOUT = "-";
/** File systems without hard links: FAT, some network file systems. */
const NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

export const backupCommands: readonly Command[] = [
  {
    words: ["backup"],
    positionals: ["[file]"],
    summary:
      "Write a backup of everything to a new file (default signalbox-<time>.tar; - for standard output), while the server runs or when it is stopped. The file contains secrets.",
    options: [
      { name: "without-logs", summary: "leave out stored calls and usage" },
      { name: "without-secrets", summary: "leave out the root token and the keys of the data folder" },
      { name: "overwrite", summary: "replace the file if it exists" },
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const contents = {
        callLogs: !context.hasSwitch("without-logs"),
        secrets: !context.hasSwitch("without-secrets"),
      };
      const [file] = context.positionals;
      // Before the server begins: a backup of PostgreSQL may take minutes until its first byte.
      const target = file === STDOUT ? null : await checkTarget(context, file);
      if (target === null) {
        if (context.out.isTTY === true)
          throw new UsageError("standard output is a terminal: redirect it to a file or a program");
        await withBackup(context, contents, undefined, (chunks) => writeChunks(chunks, context.out));
      } else {
        await untilInterrupted((signal) =>
          withBackup(context, contents, signal, (chunks) =>
            writeAndReport(context, target, withSignal(chunks, signal), signal),
          ),
        );
      }
    },
  },
  {
    words: ["backup", "verify"],
    positionals: ["<file>"],
    summary: "Read a backup and compare everything in it with its hashes; exit code 1 if it is damaged.",
    options: [],
    async run(context) {
      const path = resolve(context.workingFolder, context.positionals[0] ?? "");
      // Loaded for this command only.
      const { verifyBackup } = await import("../service/backup/restore-backup.ts");
      const manifest = await verifyBackup(path);
      context.print(manifest, (shown) => `${path} is complete\n${describe(shown)}`);
    },
  },
];

interface Contents {
  readonly callLogs: boolean;
  readonly secrets: boolean;
}

async function withBackup(
  context: CommandContext,
  contents: Contents,
  signal: AbortSignal | undefined,
  use: (chunks: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const backup = await openBackup(context, contents, signal);
  try {
    await use(backup.chunks);
  } finally {
    await backup.close();
  }
}

interface OpenBackup {
  readonly chunks: AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** Where the file is written. */
interface Target {
  /** Null for a name with the time. */
  readonly path: string | null;
  readonly folder: string;
  readonly mayReplace: boolean;
}

async function checkTarget(context: CommandContext, given: string | undefined): Promise<Target> {
  const mayReplace = context.hasSwitch("overwrite");
  const path = given === undefined ? null : resolve(context.workingFolder, given);
  const found = path === null ? null : await stat(path).catch(() => null);
  if (found?.isFile() === false) throw new UsageError(`${path} is not a file; give the name of a new file`);
  if (path !== null && found !== null && !mayReplace) throw taken(path);
  const folder = path === null ? context.workingFolder : dirname(path);
  await access(folder, constants.W_OK).catch((cause: unknown) => {
    const why = codeOf(cause) === "ENOENT" ? "does not exist" : "is not writable";
    throw new UsageError(`the folder ${folder} ${why}`, { cause });
  });
  return { path, folder, mayReplace };
}

function taken(path: string): UsageError {
  return new UsageError(`${path} exists; give another name, or --overwrite to replace it`);
}

async function openBackup(
  context: CommandContext,
  contents: Contents,
  signal: AbortSignal | undefined,
): Promise<OpenBackup> {
  // Loaded for this command only.
  const { findRunningServer } = await import("../database/sqlite/data-folder.ts");
  const environment = readEnvironment(context);
  const dataDir = dataDirOf(context.option("data-dir"), environment, context.workingFolder);
  if (findAddress(context, environment) !== null || findRunningServer(dataDir) !== null) {
    const client = await context.client();
    const response = await client
      .backup(
        { call_logs: contents.callLogs, secrets: contents.secrets },
        signal === undefined ? {} : { signal },
      )
      .catch((error: unknown) => {
        signal?.throwIfAborted();
        throw error;
      });
    if (response.body === null) throw new Error("the server sent no backup");
    return { chunks: response.body, close: () => Promise.resolve() };
  }
  // Not a server of this command's own, as other commands start: it would run due work.
  const [{ loadConfig }, { stoppedSource }, { createBackup }] = await Promise.all([
    import("../config/index.ts"),
    import("../service/backup/backup-source.ts"),
    import("../service/backup/create-backup.ts"),
  ]);
  const config = await loadConfig(toFlags(context), environment, context.workingFolder);
  const { source, close } = await stoppedSource(config);
  return { chunks: createBackup(source, contents), close };
}

/** Ends with the reason of the signal; what `chunks` has open is closed. */
async function* withSignal(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      yield chunk;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

async function writeAndReport(
  context: CommandContext,
  target: Target,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const { folder } = target;
  // Not the wanted name, which may be as long as the file system allows.
  const temporary = join(folder, `.signalbox-backup.${randomBytes(6).toString("hex")}.part`);
  try {
    await writeFile(temporary, chunks);
    const { verifyBackup } = await import("../service/backup/restore-backup.ts");
    const manifest = await verifyBackup(temporary);
    signal.throwIfAborted();
    const path = await publish(temporary, target);
    const { size } = await stat(path);
    context.print({ file: path, size, ...manifest }, (shown) => `${path}, ${mega(size)}\n${describe(shown)}`);
  } catch (error) {
    throw explain(error, folder);
  } finally {
    await rm(temporary, { force: true });
  }
}

async function writeFile(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  const file = await open(path, O_CREAT | O_EXCL | O_WRONLY, 0o600);
  try {
    for await (const chunk of chunks) await file.writeFile(chunk);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Gives the complete file its name. Two backups in one second get two names. */
async function publish(temporary: string, { path: wanted, folder, mayReplace }: Target): Promise<string> {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
  for (let i = 1; ; i++) {
    const path = wanted ?? join(folder, `signalbox-${time}${i === 1 ? "" : `-${i}`}.tar`);
    try {
      if (wanted !== null && mayReplace) await rename(temporary, path);
      else await moveToNew(temporary, path);
      const handle = await open(folder, "r");
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
      return path;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      if (wanted !== null) throw taken(wanted);
    }
  }
}

/** Fails with EEXIST if there is a file, which `rename` would replace. */
async function moveToNew(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error) ?? "")) throw error;
    // The empty file reserves the name.
    await (await open(to, "wx", 0o600)).close();
    await rename(from, to);
  }
}

/** Waits until the reader has taken a chunk: a backup may be larger than memory. */
async function writeChunks(chunks: AsyncIterable<Uint8Array>, out: Output): Promise<void> {
  if (!isProcessOutput(out)) throw new UsageError("standard output cannot take a backup");
  try {
    for await (const chunk of chunks) {
      out.write(chunk);
      await out.flush();
    }
  } catch (error) {
    // For other commands, a reader that has read enough is no failure. Here it has only a part of the backup.
    throw error instanceof OutputClosedError ? error.asFailure() : error;
  }
}

export function describe(manifest: Manifest): string {
  const { includes, counts, created_at: createdAt, version, engine } = manifest;
  const lines = [
    `from ${createdAt}, version ${version}, ${engine === "sqlite" ? "embedded SQLite" : "PostgreSQL"}`,
    `${counts.instances} instances, ${includes.call_logs ? `${counts.call_log_days} days of calls` : "without stored calls"}`,
  ];
  if (includes.secrets.length > 0)
    lines.push(
      `Keep it secret: it contains ${includes.secrets.join(", ")}. Whoever has it can read everything.`,
    );
  if (includes.variables.length > 0)
    lines.push(`Not in it, but needed after a restore: ${includes.variables.join(", ")}.`);
  return `${lines.join("\n")}\n`;
}

function explain(error: unknown, folder: string): unknown {
  if (!["ENOSPC", "EDQUOT"].includes(codeOf(error) ?? "")) return error;
  return new UsageError(`no room for the backup in ${folder}; nothing was written`, { cause: error });
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null)?.code;
}

function mega(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
