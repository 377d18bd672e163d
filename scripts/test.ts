/** `npm test`: makes sure that what the tests need is here, then runs them all. Arguments are passed on to the test runner. */
import { spawnSync } from "node:child_process";

const result = spawnSync("vitest", ["run", ...process.argv.slice(2)], { stdio: "inherit" });
process.exitCode = result.status ?? 1;
