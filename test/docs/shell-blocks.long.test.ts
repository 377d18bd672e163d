import { describe, expect, it, onTestFinished } from "vitest";
import { type CodeBlock, pagesWithCode, readCodeBlocks } from "./support/code-blocks.ts";
import { openDocPage } from "./support/doc-page.ts";

const SHELL = new Set(["sh", "bash", "console"]);

/** The secrets and keys that the pages take as given. */
const ENVIRONMENT = {
  WEBHOOK_SECRET: "change-me",
  GITHUB_WEBHOOK_SECRET: "change-me-too",
  STRIPE_WEBHOOK_SECRET: "whsec_change_me",
};

/** Programs and folders that only an operator should touch; such a block says why it is not run. */
const CHANGES_MACHINE =
  /\b(sudo|systemctl|docker|podman|kubectl|helm|apt-get|certbot|useradd)\b|\/(etc|usr|var|opt)\/|^npm (ci|install|create|init|exec)\b(?! --omit=dev && npm start| && npm test)/m;

describe("The shell blocks of the documentation run as they are written", () => {
  for (const page of pagesWithCode()) {
    const blocks = readCodeBlocks(page).filter(isPartOfTheRun);
    if (!blocks.some((block) => SHELL.has(block.language))) continue;
    it(`${page} runs from its first block to its last`, () => runInOrder(blocks));
  }

  // A newcomer reads both, with one server.
  it.each([
    ["README.md", "docs/start.md"],
    ["docs/start.md", "README.md"],
  ])("%s runs, and then %s", (...pages) => runInOrder(pages.flatMap(readCodeBlocks).filter(isPartOfTheRun)));
});

async function runInOrder(blocks: readonly CodeBlock[]): Promise<void> {
  const run = await openDocPage(ENVIRONMENT);
  onTestFinished(run.close);
  for (const block of blocks) {
    const { code, output, statuses } = await run.run(block);
    const where = `${block.page}:${block.line}\n${block.code}\n${output}`;
    expect(code, where).toBe(0);
    if (block.status !== null) expect(statuses.at(-1), where).toBe(block.status);
    else
      expect(
        statuses.filter((status) => status >= 400 || status === 0),
        where,
      ).toEqual([]);
  }
}

it("no block that is run changes the machine", () => {
  const changing = pagesWithCode()
    .flatMap(readCodeBlocks)
    .filter(isPartOfTheRun)
    .filter(({ code }) => CHANGES_MACHINE.test(code));
  expect(changing.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
});

function isPartOfTheRun(block: CodeBlock): boolean {
  return block.notRun === null && (block.file !== null || SHELL.has(block.language));
}
