/**
 * Lets users' modules load: TypeScript with standard decorators (node strips types but cannot run decorators), and `signalbox` as this
 * very package, wherever the file lies and whatever is installed there.
 */
import { readFileSync } from "node:fs";
import { registerHooks, setSourceMapsSupport } from "node:module";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE_SOURCE = join(import.meta.dirname, "../..") + sep;
/** The published package is JavaScript, the repository's is TypeScript. */
const ENTRY = new URL(import.meta.url.endsWith(".ts") ? "../../index.ts" : "../../index.js", import.meta.url)
  .href;
const TYPESCRIPT: ReadonlySet<string> = new Set([".ts", ".mts", ".tsx"]);

let isRegistered = false;

export async function registerModuleHooks(): Promise<void> {
  if (isRegistered) return;
  isRegistered = true;
  // Loaded only here: most installations have no agents of their own, and the compiler is a process beside ours.
  const { transformSync } = await import("esbuild");
  // Stack traces name the lines that people wrote. Maps are read when a module is loaded and used when a stack is printed; installed packages
  // have maps of their own, which nobody here needs.
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
        // Standard decorators and class fields, whatever a tsconfig nearby says.
        tsconfigRaw: { compilerOptions: { experimentalDecorators: false, useDefineForClassFields: true } },
      });
      return { format: "module", source: code, shortCircuit: true };
    },
  });
}

/** The path of a TypeScript file that is neither ours nor an installed package's. */
function userTypeScript(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  const path = fileURLToPath(url);
  if (!TYPESCRIPT.has(extname(path)) || path.startsWith(PACKAGE_SOURCE)) return null;
  return path.includes(`${sep}node_modules${sep}`) ? null : path;
}
