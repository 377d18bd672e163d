/** Relative links in Markdown files of the repository lead to existing files and headings. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const PAGES = globSync("{*.md,{docs,examples,bench,test,packages}/**/*.md}", {
  cwd: ROOT,
  exclude: ["**/node_modules/**", "**/dist/**"],
}).map((path) => join(ROOT, path));

it("every relative link leads to a file, and its fragment to a heading", () => {
  expect(PAGES.length).toBeGreaterThan(50);
  const dead = PAGES.flatMap((page) =>
    linksOf(readFileSync(page, "utf8"))
      .filter((link) => !leadsSomewhere(page, link))
      .map((link) => `${relative(ROOT, page)}: ${link}`),
  );
  expect(dead).toEqual([]);
});

it("links and headings are found outside code only", () => {
  const text = "# A `b`, c\n[x](y.md) `[no](no.md)` [z](https://z.example)\n```sh\n# no\n[no](no.md)\n```\n";
  expect(linksOf(text)).toEqual(["y.md"]);
  expect(fragmentsOf(text)).toEqual(["a-b-c"]);
});

function leadsSomewhere(page: string, link: string): boolean {
  const [path = "", fragment] = link.split("#");
  const target = path === "" ? page : resolve(dirname(page), decodeURI(path));
  if (!existsSync(target)) return false;
  return (
    fragment === undefined ||
    !target.endsWith(".md") ||
    fragmentsOf(readFileSync(target, "utf8")).includes(fragment)
  );
}

function linksOf(text: string): string[] {
  const prose = withoutCodeBlocks(text).replaceAll(/`[^`\n]*`/g, "");
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** As GitHub derives them: lower case, without punctuation, blanks as hyphens. */
function fragmentsOf(text: string): string[] {
  const headings = [...withoutCodeBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function withoutCodeBlocks(text: string): string {
  return text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
}
