/** Files that a program imports as values: text, bytes and WebAssembly, as the rules of its wrangler file say. */
import { readFileSync } from "node:fs";
import { matchesGlob, relative, sep } from "node:path";

export interface ImportRule {
  readonly type: "ESModule" | "CommonJS" | "CompiledWasm" | "Text" | "Data";
  readonly globs: readonly string[];
  readonly fallthrough: boolean;
}

export type RawType = "CompiledWasm" | "Text" | "Data";

/** The originals' own rules, and the endings that their bundlers commonly treat as text. */
const DEFAULT_RULES: readonly ImportRule[] = [
  {
    type: "Text",
    globs: ["**/*.txt", "**/*.html", "**/*.sql", "**/*.svg", "**/*.md", "**/*.css"],
    fallthrough: true,
  },
  { type: "Data", globs: ["**/*.bin"], fallthrough: true },
  { type: "CompiledWasm", globs: ["**/*.wasm"], fallthrough: true },
];

/** How a file is imported; null: as code. A rule without `fallthrough` hides the default rules of its type. */
export function rawTypeOf(path: string, folder: string, rules: readonly ImportRule[]): RawType | null {
  const name = relative(folder, path).split(sep).join("/");
  const hidden = new Set(rules.filter(({ fallthrough }) => !fallthrough).map(({ type }) => type));
  const all = [...rules, ...DEFAULT_RULES.filter(({ type }) => !hidden.has(type))];
  const rule = all.find(({ globs }) =>
    globs.some((glob) => matchesGlob(name, glob) || matchesGlob(path, glob)),
  );
  return rule === undefined || rule.type === "ESModule" || rule.type === "CommonJS" ? null : rule.type;
}

/** The source of a module whose default export is the value. */
export function rawModule(path: string, type: RawType): string {
  const bytes = readFileSync(path);
  if (type === "Text") return `export default ${JSON.stringify(bytes.toString("utf8"))};`;
  const copy = `new Uint8Array(Buffer.from(${JSON.stringify(bytes.toString("base64"))}, "base64"))`;
  return type === "Data"
    ? `export default ${copy}.buffer;`
    : `export default new WebAssembly.Module(${copy});`;
}
