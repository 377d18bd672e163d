/**
 * Lines of the source in stack traces of compiled files. Node maps them itself, when a stack is first read. Vitest formats stacks on its own, which
 * turns Node's mapping off: there, call sites are mapped before it formats them. They must never be mapped twice, since a mapped line is again a
 * valid line of the compiled file.
 */
import { findSourceMap, setSourceMapsSupport } from "node:module";
import { fileURLToPath } from "node:url";

type CallSite = NodeJS.CallSite;

/** `isCompiled` says whether a path is of a file that the loader has compiled. */
export function showSourceLines(isCompiled: (path: string) => boolean): void {
  // Source maps of installed packages are not needed.
  setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });
  const format = Error.prepareStackTrace;
  // Node's own function, which maps, is not always absent and has no mark of its own.
  if (process.env["VITEST"] === undefined || format === undefined) return;
  if (Function.prototype.toString.call(format).includes("internalPrepareStackTrace")) return;
  Error.prepareStackTrace = (error, sites) =>
    format(
      error,
      sites.map((site) => toSource(site, isCompiled)),
    ) as unknown;
}

function toSource(site: CallSite, isCompiled: (path: string) => boolean): CallSite {
  const file = site.getFileName();
  const line = site.getLineNumber();
  const column = site.getColumnNumber();
  if (file == null || line === null || column === null) return site;
  const path = file.startsWith("file:") ? fileURLToPath(file) : file;
  if (!isCompiled(path)) return site;
  const entry = findSourceMap(file)?.findEntry(line - 1, column - 1);
  if (entry === undefined || !("originalLine" in entry)) return site;
  const lineNumber = entry.originalLine + 1;
  const columnNumber = entry.originalColumn + 1;
  const own: Partial<Record<string | symbol, () => unknown>> = {
    getLineNumber: () => lineNumber,
    getColumnNumber: () => columnNumber,
    toString: () => textOf(site).replace(/:\d+:\d+(?=\)?$)/, `:${lineNumber}:${columnNumber}`),
  };
  return new Proxy(site, {
    // The methods of a call site refuse any other receiver.
    get: (target, key) => own[key] ?? bound(target, Reflect.get(target, key) as unknown),
  });
}

function bound(target: object, value: unknown): unknown {
  return typeof value === "function" ? (value.bind(target) as unknown) : value;
}

/** The types of Node do not know that call sites have a text of their own. */
function textOf(site: CallSite & { toString(): string }): string {
  return site.toString();
}
