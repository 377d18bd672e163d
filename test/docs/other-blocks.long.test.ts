import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parse as parseToml } from "smol-toml";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseAllDocuments } from "yaml";
import {
  type CodeBlock,
  pagesWithCode,
  readCodeBlocks,
  readGivenFiles,
  ROOT,
} from "./support/code-blocks.ts";
import { COVERED_LINES } from "./support/covered-lines.ts";

const blocks = pagesWithCode().flatMap(readCodeBlocks);
const CODE = new Set(["ts", "tsx", "js", "jsx"]);

/** Formats whose blocks are read by their parsers. */
const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  json: (text) => JSON.parse(text) as unknown,
  jsonc: (text) => JSON.parse(withoutComments(text)) as unknown,
  yaml: (text) => parseAllDocuments(text).forEach((document) => expect(document.errors).toEqual([])),
  toml: parseToml,
};

/** Run by test/deploy or by the examples; everything else that is not code shows output. */
const ELSEWHERE = new Set([
  "haproxy",
  "nginx",
  "caddyfile",
  "dockerfile",
  "ini",
  "text",
  "txt",
  "diff",
  "promql",
  "sql",
]);
const SHELL = new Set(["sh", "bash", "console"]);

describe("The other code blocks of the documentation", () => {
  it("type-check, with the files that the page names", () => {
    const folder = mkdtempSync(join(tmpdir(), "signalbox-doc-types-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(TYPES));
    for (const block of blocks)
      if (CODE.has(block.language) && block.notRun === null) writeModule(folder, block);
    for (const page of pagesWithCode())
      for (const [name, content] of readGivenFiles(page))
        writeFileSync(join(folderOf(folder, page), name), content);
    const { stdout } = spawnSync("tsc", ["-p", folder], { encoding: "utf8" });
    // The sources of the packages are checked with stricter settings by `npm run check`.
    expect(stdout.split("\n").filter((line) => line.includes(basename(folder)))).toEqual([]);
  });

  for (const block of blocks) {
    const parse = PARSERS[block.language];
    if (parse === undefined || block.notRun !== null) continue;
    it(`${block.page}:${block.line} is valid ${block.language}`, () => {
      parse(block.code);
    });
  }

  it("have a language that is run, parsed or tested elsewhere", () => {
    const unknown = blocks.filter(
      ({ language }) =>
        !CODE.has(language) && !SHELL.has(language) && !ELSEWHERE.has(language) && !(language in PARSERS),
    );
    expect(unknown.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([]);
  });

  it("say to readers of the deployment guides what was not run", () => {
    const guides = blocks.filter(
      ({ page, notRun }) => notRun !== null && /guides\/(deploy|tls|behind-a-proxy)/.test(page),
    );
    expect(guides.length).toBeGreaterThan(5);
    const unmarked = guides.filter(({ page, line, code }) => {
      const text = readFileSync(join(ROOT, page), "utf8");
      const before = text.split("\n").slice(0, line).join("\n");
      const [introduction = ""] = text.split(/^## /m);
      const section = before.slice(before.lastIndexOf("\n## "));
      return ![introduction, section, code].some((part) => /not run here/.test(part));
    });
    expect(unmarked.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  });

  it("leave lines only to tests that exist", () => {
    expect(COVERED_LINES.filter(({ test }) => !existsSync(join(ROOT, test)))).toEqual([]);
  });
});

const TYPES = {
  extends: join(ROOT, "tsconfig.json"),
  compilerOptions: {
    lib: ["es2024", "esnext.disposable", "esnext.iterator", "dom", "dom.iterable"],
    jsx: "react-jsx",
    allowJs: true,
    noUnusedLocals: false,
    noImplicitOverride: false,
    exactOptionalPropertyTypes: false,
    noUnusedParameters: false,
    erasableSyntaxOnly: false,
    allowImportingTsExtensions: true,
    typeRoots: [join(ROOT, "node_modules/@types")],
  },
  include: ["**/*.ts", "**/*.tsx", "**/*.js"],
  exclude: ["node_modules"],
};

function writeModule(folder: string, block: CodeBlock): void {
  // `// agents.ts` as the first line names the file for readers, and for other blocks of the page.
  const [, title] = /^\/\/ ([\w-]+\.tsx?)\n/.exec(block.code) ?? [];
  const file = block.file ?? title ?? `${basename(block.page, ".md")}-${block.line}.${block.language}`;
  const code = `${block.before}\n${block.code}\n${block.after}\nexport {};\n`;
  writeFileSync(join(folderOf(folder, block.page), file), code);
}

function folderOf(folder: string, page: string): string {
  const path = join(folder, page.replaceAll(/\W/g, "_"));
  mkdirSync(path, { recursive: true });
  return path;
}

function withoutComments(text: string): string {
  return text.replaceAll(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*/g, "$1").replaceAll(/,(\s*[}\]])/g, "$1");
}
