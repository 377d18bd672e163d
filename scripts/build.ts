/**
 * `npm run build`: builds the published packages, each in its `dist/` with its own package.json, packs them into `.cache/packages` and checks the
 * archives.
 *
 * In the repository, `exports` names the TypeScript sources, so they run without a build. Node does not strip types below node_modules, so the
 * published files are JavaScript. See docs/decisions/0001.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { buildAll } from "./packages/build-all.ts";
import { packAll } from "./packages/pack-all.ts";
import { ROOT } from "./packages/published.ts";

const target = join(ROOT, ".cache/packages");
// Users install all archives of the folder at once: none of an earlier version may be left.
rmSync(target, { recursive: true, force: true });
buildAll();
for (const { name, version, file, paths, unpackedBytes } of await packAll(target))
  console.log(`${name}@${version}: ${paths.length} files, ${Math.ceil(unpackedBytes / 1024)} KB in ${file}`);
