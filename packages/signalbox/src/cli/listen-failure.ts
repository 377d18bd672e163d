/** Explains why a server cannot listen, with the process that has the port where the system tells it. Loaded only for such an error. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import type { ListenError } from "../http/listen-error.ts";

export function explainListen(error: ListenError): string {
  const owner = error.code === "EADDRINUSE" ? ownerOf(error.port) : null;
  if (owner === null) return error.message;
  return error.message.replace("another program", `the process ${owner.pid} (${owner.command})`);
}

const LISTENING = "0A";

/** The process that listens on a TCP port. Null on systems without /proc, or if the process belongs to another user. */
function ownerOf(port: number): { pid: number; command: string } | null {
  try {
    const sockets = new Set(["tcp", "tcp6"].flatMap((table) => listeningSockets(table, port)));
    const pid = readdirSync("/proc").find((name) => /^\d+$/.test(name) && hasSocket(name, sockets));
    if (pid === undefined) return null;
    return { pid: Number(pid), command: commandOf(pid) };
  } catch {
    return null;
  }
}

/** The program and its script: further arguments may be secrets. */
function commandOf(pid: string): string {
  const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  const words = args.filter((arg) => arg !== "" && !arg.startsWith("-")).slice(0, 2);
  return words.map((word) => basename(word)).join(" ");
}

/** `socket:[inode]` of every socket that listens on the port. */
function listeningSockets(table: string, port: number): string[] {
  const lines = readFileSync(`/proc/net/${table}`, "utf8").split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    const isHere = Number.parseInt(local.split(":")[1] ?? "", 16) === port;
    return isHere && state === LISTENING ? [`socket:[${inode}]`] : [];
  });
}

function hasSocket(pid: string, sockets: ReadonlySet<string>): boolean {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((fd) => {
      try {
        return sockets.has(readlinkSync(`${folder}/${fd}`));
      } catch {
        // Closed since the list was read.
        return false;
      }
    });
  } catch {
    // Another user's process, or it has ended.
    return false;
  }
}
