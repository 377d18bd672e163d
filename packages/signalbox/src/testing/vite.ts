/**
 * `signalbox/testing/vite`: a plugin that compiles decorators, for Vitest. Vite's own compiler leaves standard decorators as they are, and Node
 * does not know them.
 */
import { extname } from "node:path";
import { compilerSettings, SYNTAX } from "../agents/index.ts";

/** The used part of a Vite plugin; Vite is no dependency. */
export interface AgentsPlugin {
  readonly name: string;
  readonly enforce: "pre";
  transform(code: string, id: string): Promise<{ code: string; map: string } | null>;
}

/** May also match other text; the file is then compiled all the same. */
const DECORATOR = /(?:^|[\s;{}()])@[A-Za-z_$]/;
const JAVASCRIPT: ReadonlySet<string> = new Set([".js", ".mjs"]);

export function agents(): AgentsPlugin {
  return {
    name: "signalbox:agents",
    enforce: "pre",
    async transform(code, id) {
      const path = id.split("?", 1)[0] ?? id;
      const ending = extname(path);
      const syntax = SYNTAX[ending] ?? (JAVASCRIPT.has(ending) ? "js" : undefined);
      if (syntax === undefined || path.includes("/node_modules/") || !DECORATOR.test(code)) return null;
      const { transform } = await import("esbuild");
      return transform(code, { ...compilerSettings(path, syntax), sourcemap: "external" });
    },
  };
}
