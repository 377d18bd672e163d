/**
 * `.assetsignore`: the files of a folder that are not part of the site, in the syntax of `.gitignore`. Frameworks put the server's code into the folder of the
 * site and rely on this file, because the originals' tool does not upload what it lists.
 *
 * As that tool does, letters match in either case. The last matching line decides; what is below an ignored folder stays ignored.
 */
interface Rule {
  readonly expression: RegExp;
  readonly isNegated: boolean;
  readonly isFolderOnly: boolean;
}

export class IgnoredFiles {
  readonly #rules: readonly Rule[];

  /** `text`: the content of the file. */
  constructor(text: string) {
    this.#rules = text
      .replace(/^\uFEFF/, "")
      .split(/\r?\n/)
      .map(parseLine)
      .filter((rule) => rule !== null);
  }

  /** `segments`: the path of a file below the folder. */
  has(segments: readonly string[]): boolean {
    return segments.some((_, i) => {
      const path = segments.slice(0, i + 1).join("/");
      const isFolder = i < segments.length - 1;
      const rule = this.#rules.findLast(
        ({ expression, isFolderOnly }) => (isFolder || !isFolderOnly) && expression.test(path),
      );
      return rule?.isNegated === false;
    });
  }
}

/** Null for an empty line and a comment. */
function parseLine(line: string): Rule | null {
  if (line.startsWith("#")) return null;
  // Blanks at the end count only behind a backslash.
  let pattern = line.replace(/(?<!\\)[ \t]+$/, "");
  const isNegated = pattern.startsWith("!");
  if (isNegated) pattern = pattern.slice(1);
  const isFolderOnly = pattern.endsWith("/");
  if (isFolderOnly) pattern = pattern.slice(0, -1);
  if (pattern === "") return null;
  // A pattern with a slash is a path below the folder, any other a name at any depth.
  const isPath = pattern.includes("/");
  const source = toSource(pattern.replace(/^\//, ""));
  return { expression: new RegExp(`^${isPath ? "" : "(?:.*/)?"}${source}$`, "is"), isNegated, isFolderOnly };
}

/** Any folders, everything below a folder, a star, a question mark, a class, an escaped character, any other character. */
const PARTS = /(?<=^|\/)\*\*\/|\/\*\*$|\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|[^]/g;

function toSource(pattern: string): string {
  return pattern.replaceAll(PARTS, (part) => {
    if (part === "**/") return "(?:.*/)?";
    if (part === "/**") return "/.+";
    if (part.startsWith("*")) return "[^/]*";
    if (part === "?") return "[^/]";
    if (part.length > 1 && part.startsWith("[")) return toClass(part);
    return toLiteral(part.at(-1) ?? "");
  });
}

/** A class that is none (`[z-a]`) is literal text. */
function toClass(part: string): string {
  const source = part.replace(/^\[!/, "[^").replace(/^(\[\^?)\]/, "$1\\]");
  try {
    return `(?!/)${new RegExp(source).source}`;
  } catch {
    return toLiteral(part);
  }
}

function toLiteral(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, "\\$&");
}
