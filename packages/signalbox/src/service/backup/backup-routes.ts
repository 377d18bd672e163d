/** The management route that downloads a backup. */
import { Readable } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { isRootToken } from "../../accounts/index.ts";
import { ConfigError } from "../../config/index.ts";
import { isFullDisk } from "../../engines/sqlite-file/index.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type BackupSource, createBackup } from "./create-backup.ts";
import { Staging } from "./staging.ts";

export interface BackupRouteParts {
  /** Throws if the backup would not be complete. */
  readonly source: () => BackupSource;
  /** The data folder. */
  readonly folder: string;
  readonly logger: Logger;
}

/** Each has temporary files of its own; more would only compete for the disk. */
const MAX_AT_ONCE = 2;
const BUFFER_BYTES = 1024 * 1024;
/** A client that reads nothing for so long is gone, or a person has stopped it. */
const MAX_STALL_MS = 300_000;

const body = z.strictObject({
  /** With stored calls and usage. Default true. */
  call_logs: z.boolean().default(true),
  /** With the secrets in the data folder: the root token, the keys that decrypt provider keys and headers, the secret of webhooks. Default true. */
  secrets: z.boolean().default(true),
});

export function backupRoutes({ source, folder, logger }: BackupRouteParts): Route[] {
  try {
    Staging.clean(folder);
  } catch (error) {
    // For example files of another user, who has made a backup while the server was stopped.
    logger.warn({ err: error }, "backup: cannot remove temporary files of an earlier backup");
  }
  let running = 0;
  return [
    defineRoute({
      method: "POST",
      effect: "action",
      path: "/backup",
      access: "root",
      summary:
        "Download a backup of everything as a tar archive, while the server runs. It contains secrets unless `secrets` is false; a dashboard session gets none with them.",
      body,
      changesNothing: true,
      handler: async ({ body: { call_logs: callLogs, secrets }, principal, signal }) => {
        // The archive has the root token in it.
        if (secrets && !isRootToken(principal))
          throw new SignalboxError("forbidden", {
            message: "A backup with secrets needs the root token; with a session, send secrets: false",
          });
        if (running >= MAX_AT_ONCE)
          throw new SignalboxError("overloaded", {
            message: `${running} backups are being made; wait for one of them`,
            headers: { "retry-after": "10" },
          });
        const opened = openSource(source);
        running += 1;
        const chunks = createBackup(opened, { callLogs, secrets });
        const end = async () => {
          await chunks.return(undefined).finally(() => (running -= 1));
        };
        const first = await chunks.next().catch(async (error: unknown) => {
          await end();
          throw toRefusal(error);
        });
        const stream: Readable = Readable.from(
          untilStalled(first, chunks, () => stream.destroy(new Error("the client does not read"))),
          { objectMode: false, highWaterMark: BUFFER_BYTES },
        );
        stream.on("close", () => {
          end().catch((error: unknown) =>
            logger.error({ err: error }, "backup: cannot remove temporary files"),
          );
        });
        if (signal.aborted) stream.destroy();
        stream.on("error", (error) => logger.warn({ err: error }, "backup: ended early"));
        const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
        return {
          raw: { contentType: "application/x-tar", body: stream },
          headers: {
            "cache-control": "no-store",
            "content-disposition": `attachment; filename="signalbox-${time}.tar"`,
          },
        };
      },
    }),
  ];
}

function openSource(source: () => BackupSource): BackupSource {
  try {
    return source();
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    throw new SignalboxError("conflict", { message: cause.message, cause });
  }
}

/** Ends a backup whose client does not read: its temporary files need room. */
async function* untilStalled(
  first: IteratorResult<Uint8Array>,
  rest: AsyncGenerator<Uint8Array>,
  onStall: () => void,
): AsyncGenerator<Uint8Array> {
  for (let next = first; next.done !== true; next = await rest.next()) {
    const timer = setTimeout(onStall, MAX_STALL_MS).unref();
    try {
      yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** What was wrong before the first byte. */
function toRefusal(cause: unknown): unknown {
  const message = isFullDisk(cause)
    ? "The backup needs room for temporary files in the data folder, and the disk is full"
    : cause instanceof ConfigError
      ? cause.message
      : null;
  return message === null ? cause : new SignalboxError("storage_unavailable", { message, cause });
}
