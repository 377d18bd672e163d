import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The package's own version, one level above `src/` and `dist/` alike. */
export const VERSION = (
  JSON.parse(readFileSync(join(import.meta.dirname, "..", "package.json"), "utf8")) as { version: string }
).version;
