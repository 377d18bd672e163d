/**
 * What happens on a Node that is too old: the command runs again on a Node 24 that is installed beside the package, as the npm package `node`. The
 * repository has it, and so has a project that was created on an old Node. Without one, a single line names a command that works.
 *
 * 1. Plain JavaScript that Node 18 runs.
 * 2. Nothing is downloaded: a command that fetches a whole Node without being asked would be a surprise, and impossible without a network.
 * 3. The old process stays as a parent that forwards signals and the exit code, because an old Node cannot replace itself (`execve`).
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const REQUIRED = 24;
const EXIT_USAGE = 2;
const BIN = join(dirname(fileURLToPath(import.meta.url)), "signalbox.js");
/** Arguments that mean the same in every shell without quotes. */
const PLAIN = /^[\w@%+=:,./-]+$/;

export function isNodeSupported() {
  return majorOf(process.versions.node) >= REQUIRED;
}

/** Resolves to the exit code. */
export function runOnRequiredNode(args) {
  const node = findNode(dirname(BIN));
  if (node !== null) return run(node, args);
  process.stderr.write(
    `signalbox needs Node ${REQUIRED} or newer, this is ${process.version}. Run: ${remedy(args)}\n`,
  );
  return Promise.resolve(EXIT_USAGE);
}

/** Exported for its test. */
export function remedy(args) {
  const { version } = JSON.parse(readFileSync(join(dirname(BIN), "../package.json"), "utf8"));
  const words = args.every((arg) => PLAIN.test(arg))
    ? args
    : args.slice(0, 1).filter((arg) => PLAIN.test(arg));
  return ["npx -y -p", `node@${REQUIRED}`, "-p", `signalbox@${version}`, "signalbox", ...words].join(" ");
}

/** In `node_modules` of the folder and of those above it, as Node itself searches packages. */
function findNode(folder) {
  const found = join(folder, "node_modules/node");
  const binary = join(found, process.platform === "win32" ? "bin/node.exe" : "bin/node");
  if (existsSync(binary) && existsSync(join(found, "package.json"))) {
    const { version } = JSON.parse(readFileSync(join(found, "package.json"), "utf8"));
    if (majorOf(version) >= REQUIRED) return binary;
  }
  return dirname(folder) === folder ? null : findNode(dirname(folder));
}

function majorOf(version) {
  return Number(version.split(".")[0]);
}

function run(node, args) {
  return new Promise((resolve) => {
    const child = spawn(node, [...process.execArgv, "--", BIN, ...args], { stdio: "inherit" });
    const forward = (signal) => child.kill(signal);
    process.on("SIGTERM", forward).on("SIGHUP", forward);
    // A terminal sends Ctrl-C to both processes; a second signal would end the child at once.
    process.on("SIGINT", (signal) => {
      if (!process.stdin.isTTY) forward(signal);
    });
    child.once("error", (error) => {
      process.stderr.write(`signalbox: cannot run ${node}: ${error.message}\n`);
      resolve(EXIT_USAGE);
    });
    child.once("exit", (code, signal) => {
      if (signal === null) return resolve(code);
      for (const name of ["SIGTERM", "SIGHUP", "SIGINT"]) process.removeAllListeners(name);
      process.kill(process.pid, signal);
    });
  });
}
