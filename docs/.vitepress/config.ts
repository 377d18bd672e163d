/** The site of the documentation: `npm run docs:site` builds it from the Markdown files of `docs/`, which are also readable in the repository. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { linkToRepository } from "./repository-links.ts";
import { sidebar } from "./sidebar.ts";

const { repository } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../packages/signalbox/package.json"), "utf8"),
) as { repository: { url: string } };
const REPOSITORY = repository.url.replace(/^git\+/, "").replace(/\.git$/, "");

export default defineConfig({
  title: "Signalbox",
  description: "A self-hosted AI gateway, webhook-driven agents and resource tags behind one port.",
  // The index of the repository's folder; the site has `index.md` and the sidebar.
  srcExclude: ["README.md"],
  rewrites: { "decisions/README.md": "decisions/index.md" },
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    languageAlias: { haproxy: "nginx", caddyfile: "nginx", promql: "txt" },
    config: (parser) => linkToRepository(REPOSITORY)(parser),
  },
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/logo.svg" }]],
  themeConfig: {
    logo: { light: "/logo.svg", dark: "/logo-dark.svg" },
    nav: [
      { text: "Start", link: "/start" },
      { text: "Guides", link: "/guides/protect-and-meter-openai" },
      { text: "Reference", link: "/reference/running" },
      { text: "API", link: "/reference/api/" },
      { text: "Comparison", link: "/comparison" },
      { text: "Failure modes", link: "/failure-modes" },
    ],
    sidebar,
    outline: [2, 3],
    socialLinks: [{ icon: "github", link: REPOSITORY }],
    search: {
      provider: "local",
      options: {
        // The records of decisions and promises repeat the words of every page; a search should lead to the page.
        _render: (source, env, parser) =>
          /^(decisions\/0|promises|chaos)/.test(env.relativePath) ? "" : parser.render(source, env),
      },
    },
  },
});
