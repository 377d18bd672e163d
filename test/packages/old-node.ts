/** A Node that is older than Signalbox needs: the one that runs npm, another one in the PATH, or one from npm. */
import { execFileSync, spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";

const REQUIRED = 24;

export function findOldNode(): string {
  const inPath = (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, "node"));
  const found = [process.env["npm_node_execpath"], ...inPath].find(isOld);
  if (found !== undefined) return found;
  const script = ["-y", "-p", "node@20", "node", "-p", "process.execPath"];
  return execFileSync("npx", script, { encoding: "utf8" }).trim();
}

function isOld(node: string | undefined): node is string {
  if (node === undefined) return false;
  const { status, stdout } = spawnSync(node, ["-p", "process.versions.node"], { encoding: "utf8" });
  return status === 0 && Number(stdout.split(".")[0]) < REQUIRED;
}
