/**
 * Inside of the process of a loaded program: its modules. A module can import the program's other modules, `cloudflare:…`, and those modules of Node that compute and reach nothing
 * outside of the process. Every other import fails, as it would if the module did not exist.
 */
import { createRequire, registerHooks } from "node:module";
import { compileFunction } from "node:vm";
import type { CodeModule } from "../program-code.ts";

const SCHEME = "loaded:///";
const KEY = Symbol.for("signalbox.loaded-modules");
/** Modules of Node that programs may import as they are. */
const BUILT_IN: ReadonlySet<string> = new Set([
  "assert",
  "assert/strict",
  "buffer",
  "crypto",
  "events",
  "path",
  "path/posix",
  "path/win32",
  "punycode",
  "querystring",
  "stream",
  "stream/consumers",
  "stream/promises",
  "stream/web",
  "string_decoder",
  "timers",
  "timers/promises",
  "url",
  "util",
  "util/types",
  "zlib",
]);

type Values = Readonly<Record<string, unknown>>;

/** Node's types have no names for it. */
const { WebAssembly: wasm } = globalThis as unknown as {
  WebAssembly: { Module: new (bytes: ArrayBuffer) => object };
};

export interface ProgramModules {
  readonly main: string;
  readonly modules: readonly (readonly [name: string, module: CodeModule])[];
  /** By specifier: modules that are values of this process. */
  readonly platform: Readonly<Record<string, Values>>;
}

/** Must be called before the process is confined; imports the main module when the returned function is called. */
export function createLoader({ main, modules, platform }: ProgramModules): () => Promise<Values> {
  const byName = new Map(modules);
  const require = createRequire("file:///");
  const common = new Map<string, { exports: unknown }>();
  const find = (specifier: string, importer: string): string => {
    const isRelative = /^\.{0,2}\//.test(specifier);
    const name = isRelative
      ? decodeURI(new URL(specifier, SCHEME + encodeURI(importer)).pathname.slice(1))
      : specifier;
    if (byName.has(name)) return name;
    throw new Error(`No such module "${specifier}", imported from "${importer}".`);
  };
  const valueOf = (name: string): unknown => {
    const { kind, content } = byName.get(name) ?? { kind: "text", content: "" };
    if (kind === "cjs") return requireCommon(name);
    if (kind === "json") return JSON.parse(content as string) as unknown;
    return kind === "wasm" ? new wasm.Module(content as ArrayBuffer) : content;
  };
  const requireCommon = (name: string): unknown => {
    const known = common.get(name);
    if (known !== undefined) return known.exports;
    const module: { exports: unknown } = { exports: {} };
    common.set(name, module);
    const run = compileFunction(
      (byName.get(name)?.content ?? "") as string,
      ["exports", "require", "module", "__filename", "__dirname"],
      { filename: name },
    );
    Reflect.apply(run, module.exports, [module.exports, requireFrom(name), module, `/${name}`, "/"]);
    return module.exports;
  };
  const requireFrom = (importer: string) => (specifier: string) => {
    const own = platform[withPrefix(specifier)];
    if (own !== undefined) return own;
    const builtIn = builtInName(specifier);
    if (builtIn !== null) return require(builtIn) as unknown;
    const name = find(specifier, importer);
    if (byName.get(name)?.kind === "js")
      throw new Error(`require("${specifier}"): an ES module cannot be required, import it instead`);
    return valueOf(name);
  };
  Object.defineProperty(globalThis, KEY, {
    value: { valueOf, platform: (specifier: string) => platform[specifier] },
  });
  const sourceOf = (url: string): string => {
    const name = decodeURI(url.slice(SCHEME.length));
    const own = platform[name];
    if (own !== undefined) return platformSource(name, own);
    const { kind, content } = byName.get(name) ?? { kind: "text", content: "" };
    if (kind === "js") return content as string;
    return `export default globalThis[Symbol.for(${JSON.stringify(KEY.description)})].valueOf(${JSON.stringify(name)});`;
  };
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const parent = context.parentURL;
      const isProgram = parent?.startsWith(SCHEME) === true;
      if (!isProgram && !specifier.startsWith(SCHEME)) return nextResolve(specifier, context);
      if (!isProgram) return { url: specifier, format: "module", shortCircuit: true };
      const known = withPrefix(specifier);
      if (platform[known] !== undefined)
        return { url: SCHEME + encodeURI(known), format: "module", shortCircuit: true };
      const importer = decodeURI(parent.slice(SCHEME.length));
      const builtIn = byName.has(specifier) ? null : builtInName(specifier);
      if (builtIn !== null) return { url: builtIn, format: "builtin", shortCircuit: true };
      return { url: SCHEME + encodeURI(find(specifier, importer)), format: "module", shortCircuit: true };
    },
    load: (url, context, nextLoad) =>
      url.startsWith(SCHEME)
        ? { format: "module", source: sourceOf(url), shortCircuit: true }
        : nextLoad(url, context),
  });
  return async () => (await import(SCHEME + encodeURI(main))) as Values;
}

/** The names that programs use for a module of the platform: `async_hooks` is `node:async_hooks`. */
function withPrefix(specifier: string): string {
  return specifier.includes(":") ? specifier : `node:${specifier}`;
}

/** Null for a module that programs may not have. */
function builtInName(specifier: string): string | null {
  const name = specifier.startsWith("node:") ? specifier.slice("node:".length) : specifier;
  return BUILT_IN.has(name) ? `node:${name}` : null;
}

function platformSource(name: string, values: Values): string {
  const source = `globalThis[Symbol.for(${JSON.stringify(KEY.description)})].platform(${JSON.stringify(name)})`;
  const names = Object.keys(values).filter((key) => key !== "default");
  return [
    `const values = ${source};`,
    ...names.map((key) => `export const ${key} = values[${JSON.stringify(key)}];`),
    "export default values;",
  ].join("\n");
}
