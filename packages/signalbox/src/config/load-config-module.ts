/**
 * Loads a configuration file that is a program: TypeScript or JavaScript, with `import` or `require`, in a project of any module type.
 *
 * esbuild bundles the file with the files that it imports by path, and Node runs the result in the place of the file. Node alone would decide by the
 * ending and by `type` in package.json what syntax a file has, and `npm init` writes `commonjs`.
 *
 * 1. Nothing is written to disk: a loader hook hands the bundle to Node under the URL of the file, so packages are found from there.
 * 2. `signalbox` is this package, wherever the file is and whatever is installed there. Other packages are loaded by Node, not bundled.
 * 3. `import.meta` and `__dirname` name the file in which they are written.
 */
import type { BuildFailure, Message, Plugin } from "esbuild";
import { readFileSync } from "node:fs";
import { registerHooks, setSourceMapsSupport } from "node:module";
import { dirname, extname, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** JavaScript in the published package, TypeScript in the repository. */
const ENTRY = new URL(import.meta.url.endsWith(".ts") ? "../index.ts" : "../index.js", import.meta.url).href;
const PREFIX = "signalbox-config=";
const QUERY = new RegExp(`\\?${PREFIX}\\d+`, "g");
/** What a CommonJS file finds in its scope, and what esbuild leaves to the scope of the bundle. */
const REQUIRE =
  'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);';
const LOCATIONS = /\b(import\.meta|__dirname|__filename)\b/;
const LOCATION_NAMES = ["__configUrl", "__configFilename", "__configDirname"] as const;
const [URL_NAME, FILENAME, DIRNAME] = LOCATION_NAMES;

/** `module.exports` exists in CommonJS files only, and in a project of type `module` that is a matter of the ending. */
const NO_DEFAULT = "no default export; to use module.exports instead, name the file .cjs or .cts";

/** Bundles that Node has not asked for yet, by URL. */
const bundles = new Map<string, string>();
let loads = 0;
let isRegistered = false;

/** The default export, or `module.exports`. Throws an error whose message is one line, with the place of a syntax error. */
export async function loadConfigModule(path: string): Promise<unknown> {
  const code = await bundle(path);
  registerConfigHooks();
  loads += 1;
  const url = `${pathToFileURL(path).href}?${PREFIX}${loads}`;
  bundles.set(url, code);
  let module: { default?: unknown };
  try {
    module = (await import(/* @vite-ignore */ url)) as { default?: unknown };
  } catch (error) {
    throw new Error(withPlace(error, path), { cause: error });
  } finally {
    bundles.delete(url);
  }
  const value = unwrapDefault(module.default);
  if (value === undefined) throw new Error(NO_DEFAULT);
  return value;
}

async function bundle(path: string): Promise<string> {
  const { build, stop } = await import("esbuild");
  try {
    const { outputFiles } = await build({
      entryPoints: [path],
      absWorkingDir: dirname(path),
      bundle: true,
      write: false,
      packages: "external",
      platform: "node",
      format: "esm",
      target: "node24",
      sourcemap: "inline",
      sourcesContent: false,
      logLevel: "silent",
      banner: { js: REQUIRE },
      define: {
        "import.meta.url": URL_NAME,
        "import.meta.filename": FILENAME,
        "import.meta.dirname": DIRNAME,
        __filename: FILENAME,
        __dirname: DIRNAME,
      },
      plugins: [ownLocations],
    });
    return outputFiles[0]?.text ?? "";
  } catch (error) {
    const [first] = (error as Partial<BuildFailure>).errors ?? [];
    throw first === undefined ? error : new Error(toLine(first, path), { cause: error });
  } finally {
    // The compiler is a process with tens of megabytes, and the configuration is read once.
    await stop();
  }
}

/** `lib/settings.ts:3:14: Expected ";" but found "x"`. The place is not repeated if it is the configuration file itself without a line. */
function toLine({ text, location }: Message, path: string): string {
  if (location === null) return text;
  // esbuild counts columns from 0.
  return `${location.file || relative(dirname(path), path)}:${location.line}:${location.column + 1}: ${text}`;
}

/** In a bundle all files have the location of the first one, so each file gets its own as constants. */
const ownLocations: Plugin = {
  name: "own-locations",
  setup(build) {
    build.onLoad({ filter: /\.[cm]?[jt]s$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8").replace(/^#!.*/, "");
      const values = [pathToFileURL(path).href, path, dirname(path)];
      const constants = LOCATION_NAMES.map((name, i) => `${name} = ${JSON.stringify(values[i])}`).join(", ");
      // On the first line, so that the lines of messages and stack traces stay true.
      const contents = LOCATIONS.test(source) ? `const ${constants};${source}` : source;
      return { contents, loader: /t/.test(extname(path)) ? "ts" : "js" };
    });
  },
};

function registerConfigHooks(): void {
  if (isRegistered) return;
  isRegistered = true;
  // Source maps of installed packages are not needed.
  setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier !== "signalbox") return nextResolve(specifier, context);
      return {
        url: ENTRY,
        format: ENTRY.endsWith(".ts") ? "module-typescript" : "module",
        shortCircuit: true,
      };
    },
    load(url, context, nextLoad) {
      const source = url.includes(PREFIX) ? bundles.get(url) : undefined;
      return source === undefined ? nextLoad(url, context) : { format: "module", source, shortCircuit: true };
    },
  });
}

/** The message of an error that the file threw while it ran, with the line if the stack has one. */
function withPlace(error: unknown, path: string): string {
  if (!(error instanceof Error)) return String(error);
  const [message = ""] = error.message.replaceAll(QUERY, "").split("\n");
  const folder = dirname(path);
  for (const [, place = ""] of (error.stack ?? "")
    .replaceAll(QUERY, "")
    .matchAll(/(?:\(|at )((?:file:\/\/)?\/[^\s()]+:\d+:\d+)\)?/g)) {
    const file = place.startsWith("file:") ? fileURLToPath(place) : place;
    const shown = relative(folder, file);
    if (!shown.startsWith("..") && !shown.includes("node_modules")) return `${shown}: ${message}`;
  }
  return message;
}

/** A CommonJS file that a compiler made from `export default` has the value one level deeper. */
function unwrapDefault(value: unknown): unknown {
  const isCompiled =
    typeof value === "object" && value !== null && "__esModule" in value && "default" in value;
  return isCompiled ? value.default : value;
}
