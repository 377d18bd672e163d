import { posix } from "node:path";

/** What this plugin needs of markdown-it. */
interface MarkdownParser {
  readonly core: {
    readonly ruler: { push(name: string, rule: (state: RenderState) => void): void };
  };
}

interface RenderState {
  readonly env: { readonly relativePath?: string };
  readonly tokens: readonly Token[];
}

interface Token {
  readonly type: string;
  readonly children: readonly Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** On the site, links to files outside of `docs/` go to the repository; in the repository they are ordinary relative links. */
export function linkToRepository(repository: string) {
  return (parser: MarkdownParser): void => {
    parser.core.ruler.push("links to the repository", ({ env, tokens }) => {
      const folder = posix.dirname(posix.join("docs", env.relativePath ?? ""));
      for (const link of tokens.flatMap(({ children }) => children ?? [])) {
        if (link.type !== "link_open") continue;
        const target = repositoryUrl(repository, folder, link.attrGet("href") ?? "");
        if (target !== null) link.attrSet("href", target);
      }
    });
  };
}

function repositoryUrl(repository: string, folder: string, href: string): string | null {
  if (!href.startsWith("../")) return null;
  const [path = "", anchor] = href.split("#");
  const file = posix.join(folder, path);
  if (file.startsWith("docs/") || file.startsWith("..")) return null;
  return `${repository}/blob/main/${file}${anchor === undefined ? "" : `#${anchor}`}`;
}
