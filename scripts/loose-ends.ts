/** Part of `npm run check`: finds unhandled promises, ignored failures and unhandled `error` events in the published code. */
import { globSync, readFileSync } from "node:fs";
import { findLooseEnds } from "./support/loose-ends.ts";

const FILES = globSync("packages/{protocol,translate,client,create-signalbox,signalbox}/src/**/*.ts").filter(
  (path) => !path.endsWith(".test.ts") && !path.includes("-contract"),
);

let count = 0;
for (const path of FILES) {
  for (const { line, problem } of findLooseEnds(path, readFileSync(path, "utf8"))) {
    count += 1;
    console.error(`${path}:${line}: ${problem}`);
  }
}
// scripts/check.ts reads this line, so that a pattern that matches no file fails.
console.log(`${FILES.length} files read, ${count} loose ends`);
process.exitCode = count === 0 && FILES.length > 0 ? 0 : 1;
