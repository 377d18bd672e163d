/** How users' files are compiled: standard decorators and class fields, whatever their tsconfig says. */
import type { TransformOptions } from "esbuild";
import { dirname } from "node:path";
import { projectSettings } from "./tsconfig.ts";

/** The endings that need a compiler, and esbuild's name of their syntax. */
export const SYNTAX: Readonly<Record<string, "ts" | "tsx" | "jsx">> = {
  ".ts": "ts",
  ".mts": "ts",
  ".tsx": "tsx",
  ".jsx": "jsx",
};

export function compilerSettings(
  path: string,
  syntax: "ts" | "tsx" | "jsx" | "js" | "json",
): TransformOptions {
  const { jsx, jsxImportSource } = projectSettings(dirname(path));
  return {
    sourcefile: path,
    loader: syntax,
    format: "esm",
    target: "node24",
    tsconfigRaw: {
      compilerOptions: {
        experimentalDecorators: false,
        useDefineForClassFields: true,
        ...(jsx === undefined ? {} : { jsx: jsx as "react-jsx" }),
        ...(jsxImportSource === undefined ? {} : { jsxImportSource }),
      },
    },
  };
}
