/**
 * Loader hooks for users' modules: TypeScript with standard decorators (Node strips types but does not support decorators), and `signalbox` as
 * this package, wherever the module is and whatever is installed there.
 */
import { readFileSync } from "node:fs";
import { registerHooks, setSourceMapsSupport } from "node:module";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE_SOURCE = join(import.meta.dirname, "../..") + sep;
/** JavaScript in the published package, TypeScript in the repository. */
const ENTRY = new URL(import.meta.url.endsWith(".ts") ? "../../index.ts" : "../../index.js", import.meta.url)
  .href;
const TYPESCRIPT: ReadonlySet<string> = new Set([".ts", ".mts", ".tsx"]);

let isRegistered = false;

export async function registerModuleHooks(): Promise<void> {
  if (isRegistered) return;
  isRegistered = true;
  // Loaded on demand: most installations have no modules, and esbuild starts a process.
  const { transformSync } = await import("esbuild");
  // Stack traces then name lines of the source. Source maps of installed packages are not needed.
  setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      specifier === "signalbox"
        ? { url: ENTRY, format: ENTRY.endsWith(".ts") ? "module-typescript" : "module", shortCircuit: true }
        : nextResolve(specifier, context),
    load(url, context, nextLoad) {
      const path = userTypeScript(url);
      if (path === null) return nextLoad(url, context);
      const { code } = transformSync(readFileSync(path, "utf8"), {
        sourcefile: path,
        loader: extname(path) === ".tsx" ? "tsx" : "ts",
        format: "esm",
        target: "node24",
        sourcemap: "inline",
        // Standard decorators and class fields, whatever the user's tsconfig says.
        tsconfigRaw: { compilerOptions: { experimentalDecorators: false, useDefineForClassFields: true } },
      });
      return { format: "module", source: code, shortCircuit: true };
    },
  });
}

/** The path of a TypeScript file that belongs neither to this package nor to an installed one; else null. */
function userTypeScript(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  const path = fileURLToPath(url);
  if (!TYPESCRIPT.has(extname(path)) || path.startsWith(PACKAGE_SOURCE)) return null;
  return path.includes(`${sep}node_modules${sep}`) ? null : path;
}
