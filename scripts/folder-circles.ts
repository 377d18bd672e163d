/** Part of `npm run check`: no folders of the service need each other. */
import { globSync, readFileSync } from "node:fs";
import { findFolderCircles } from "./support/folder-circles.ts";

const ROOT = "packages/signalbox/src";
/** Tests, and the lists that tests of several folders share, may use what they like. */
const OF_TESTS = /(\.test|-contract|-model|-fixture)\.ts$|\/contract\//;

const paths = globSync(`${ROOT}/**/*.ts`).filter((path) => !OF_TESTS.test(path));
const circles = findFolderCircles(ROOT, new Map(paths.map((path) => [path, readFileSync(path, "utf8")])));
for (const { folder, entries, imports } of circles) {
  console.error(`${ROOT}/${folder}: ${entries.join(", ")} need each other:\n  ${imports.join("\n  ")}`);
}
// scripts/check.ts reads this line, so that a pattern that matches no file fails.
console.log(`${paths.length} files read, ${circles.length} circles`);
process.exitCode = circles.length === 0 && paths.length > 0 ? 0 : 1;
