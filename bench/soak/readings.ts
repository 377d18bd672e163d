/** What a soak reads of the server from outside: memory, descriptors, files and bytes of its data folder. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ServerOnCore } from "../support/server-on-core.ts";

const MIB = 2 ** 20;

export interface ServerReading {
  readonly memoryMiB: number;
  /** Zero without /proc. */
  readonly descriptors: number;
  readonly files: number;
  readonly dataMiB: number;
}

export function readServer(
  server: Pick<ServerOnCore, "pid" | "residentBytes">,
  dataDir: string,
): ServerReading {
  const { files, bytes } = sizeOf(dataDir);
  return {
    memoryMiB: (server.residentBytes() ?? 0) / MIB,
    descriptors: countDescriptors(server.pid),
    files,
    dataMiB: bytes / MIB,
  };
}

function countDescriptors(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

function sizeOf(folder: string): { files: number; bytes: number } {
  let files = 0;
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    files += 1;
    // A file may be deleted between the two calls.
    bytes += statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return { files, bytes };
}
