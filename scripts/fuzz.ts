/**
 * `npm run fuzz -- <target> --minutes n [--seed s]`: tests generated inputs until the time is over. Prints the seed, so that a run can be
 * repeated. A failing input is written to test/hostile/cases, where every later test run repeats it, and ends this run with exit code 1.
 * See docs/decisions/0095.
 */
import { parseArgs } from "node:util";
import { keepCase, readCases } from "../test/hostile/fuzz/cases.ts";
import { attemptEach, fuzz } from "../test/hostile/fuzz/run-fuzz.ts";
import { FUZZ_TARGETS } from "../test/hostile/fuzz/targets.ts";

const USAGE = "usage: npm run fuzz -- <target> --minutes <n> [--seed <s>]";

process.exitCode = await main();

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { minutes: { type: "string", default: "1" }, seed: { type: "string" } },
  });
  const target = FUZZ_TARGETS.find(({ name }) => name === positionals[0]);
  const minutes = Number(values.minutes);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(values.seed);
  if (target === undefined || positionals.length !== 1 || !(minutes > 0) || !Number.isInteger(seed)) {
    const names = FUZZ_TARGETS.map(({ name, summary }) => `  ${name.padEnd(20)} ${summary}`);
    console.error(`${USAGE}\n\ntargets:\n${names.join("\n")}`);
    return 2;
  }
  console.log(`${target.name}: seed ${seed}, ${minutes} min`);
  const [broken] = await attemptEach(target, readCases(target.name));
  if (broken !== undefined) {
    console.error(`stored case fails: ${broken}`);
    return 1;
  }
  const end = performance.now() + minutes * 60_000;
  const { tried, find } = await fuzz(target, seed, () => performance.now() >= end);
  console.log(`${tried} inputs tested`);
  if (find === null) return 0;
  console.error(`${find.problem}\nstored as ${keepCase(target.name, find)}`);
  return 1;
}
