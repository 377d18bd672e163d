/**
 * Runs a client without a terminal, in a home of its own, so that nothing of the machine's user is read or changed. Where the system lets a
 * user create namespaces, the client has a network of its own in which nothing but the gateway exists.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { RecordedDoor } from "./recorded-door.ts";

export interface ClientRun {
  readonly code: number | null;
  /** What a person would read: both outputs, without colours. */
  readonly output: string;
}

/** Clients left by a failed test end with its process: one may sleep for days. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});

const OWN_NETWORK = join(import.meta.dirname, "own-network.ts");

export const HAS_OWN_NETWORK =
  spawnSync("unshare", ["-rn", "ip", "link", "set", "lo", "up"], { stdio: "ignore" }).status === 0;

export async function runClient(
  program: string,
  args: readonly string[],
  door: RecordedDoor,
  places: { readonly home: string; readonly work: string },
  environment: Readonly<Record<string, string>>,
): Promise<ClientRun> {
  const through = HAS_OWN_NETWORK
    ? ["unshare", "-rn", process.execPath, OWN_NETWORK, String(door.port), door.socketFile]
    : [];
  const [first = program, ...rest] = [...through, program, ...args];
  const child = spawn(first, rest, {
    cwd: places.work,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      // `process.execPath` first: the programs need a newer Node.js than the machine may have.
      PATH: `${join(process.execPath, "..")}:${process.env["PATH"]}`,
      HOME: places.home,
      TMPDIR: places.home,
      NO_COLOR: "1",
      TERM: "dumb",
      CI: "1",
      ...environment,
    },
  });
  running.add(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  running.delete(child);
  // oxlint-disable-next-line no-control-regex -- the escape sequences of terminals
  return { code, output: output.replaceAll(/\u001B\[[\d;?]*[A-Za-z]/g, "") };
}
