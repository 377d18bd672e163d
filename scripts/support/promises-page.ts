/** `docs/promises.md`: the tests of each promise. */
import { join } from "node:path";
import { parseEntry, PROMISING_PAGES, REPOSITORY } from "../../test/promises/promises.ts";

export const PROMISES_PAGE_PATH = join(REPOSITORY, "docs/promises.md");

const INTRODUCTION = `# Promises and their tests

This page is generated from the lists in \`test/promises\` by \`npm run docs\`. A test fails if a promise has no entry, an entry has no promise, or a test named
here does not exist. \`%s\` and \`$name\` are placeholders for the cases of one test.
`;

export function promisesPage(): string {
  const sections = PROMISING_PAGES.map(({ path, tests }) => {
    const promises = Object.entries(tests).map(([promise, entries]) => {
      const lines = entries.map((entry) => {
        const { path: file, title } = parseEntry(entry);
        return `  - [${file.replace("packages/signalbox/src/", "").replace(".test.ts", "")}](../${file}): ${escape(title)}\n`;
      });
      return `- ${promise}\n${lines.join("")}`;
    });
    return `\n## [${path}](${path.startsWith("docs/") ? path.slice("docs/".length) : `../${path}`})\n\n${promises.join("")}`;
  });
  return INTRODUCTION + sections.join("");
}

/** Titles are plain text. */
const escape = (title: string) => title.replaceAll(/[_*<>]/g, String.raw`\$&`);
