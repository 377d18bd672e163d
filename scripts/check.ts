/** `npm run check`: runs format, lint, types, import rules, loose ends, circles and dead code in parallel. Prints failures and then exits with 1. */
import { spawn } from "node:child_process";
import { once } from "node:events";

interface Check {
  readonly name: string;
  readonly command: readonly string[];
  /** Output that proves that the tool has read files; a tool that reads nothing also succeeds. */
  readonly proof?: RegExp;
}

/** One checker instead of four, which check a part of the types several times: 25 s of CPU time instead of 31 s, and the cores have other checks to run. */
const TYPES = ["tsc", "--checkers", "1", "-p"];

const CHECKS: readonly Check[] = [
  { name: "format", command: ["oxfmt", "--check", "."] },
  { name: "lint", command: ["oxlint", "--type-aware", "--deny-warnings"] },
  { name: "types", command: [...TYPES, "."] },
  // The client also runs in browsers, so it is checked with DOM types.
  { name: "types of the client", command: [...TYPES, "packages/client"] },
  { name: "types of the examples", command: [...TYPES, "examples"] },
  { name: "dashboard types", command: [...TYPES, "packages/dashboard"] },
  {
    name: "imports",
    command: ["depcruise", "--config", ".dependency-cruiser.cjs", "packages", "test", "bench", "scripts"],
    // With a wrong parser, depcruise reads no module and reports success.
    proof: /\(([1-9]\d{1,}) modules, [1-9]\d{1,} dependencies cruised\)/,
  },
  {
    name: "loose ends",
    command: ["node", "scripts/loose-ends.ts"],
    proof: /^[1-9]\d+ files read, 0 loose ends$/m,
  },
  {
    name: "circles between folders",
    command: ["node", "scripts/folder-circles.ts"],
    proof: /^[1-9]\d+ files read, 0 circles$/m,
  },
  { name: "dead code", command: ["knip"] },
];

const results = await Promise.all(CHECKS.map(run));
const failed = results.filter((result) => !result.isOk);
for (const { name, output } of failed) console.error(`── ${name}\n${output}`);
for (const { name, isOk, seconds } of results)
  console.log(`${isOk ? "ok  " : "FAIL"} ${name} (${seconds.toFixed(1)} s)`);
process.exitCode = failed.length === 0 ? 0 : 1;

async function run({ name, command, proof }: Check) {
  const startedAt = performance.now();
  const [tool = "", ...args] = command;
  const child = spawn(tool, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, FORCE_COLOR: "0" },
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  const isOk = code === 0 && (proof === undefined || proof.test(output));
  return { name, isOk, output, seconds: (performance.now() - startedAt) / 1000 };
}
