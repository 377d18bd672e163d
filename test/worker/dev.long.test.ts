/** `signalbox dev` with a worker: a change of its sources, its settings or a file that it imports is served soon after. */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { spawnCli } from "../support/server-process.ts";

/** Each of five changes restarts the server, which a busy machine does slowly. */

test("dev serves the changed program, also after one that could not be loaded", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-dev-"));
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  await write("wrangler.jsonc", '{ "vars": { "WORD": "one" } }');
  await write("text.txt", "first");
  const source = (end: string) =>
    `import text from "./text.txt";
     export default { fetch: (request, env) => new Response(\`\${env.WORD} \${text} ${end}\`) };`;
  await write("worker.ts", source("a"));
  const child = spawnCli(
    ["dev", "--json", "--port", "0", "--worker", "worker.ts", "--agents-access", "worker", "--no-reexec"],
    { cwd: folder },
  );
  let url = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    url = (JSON.parse(line) as { url: string }).url;
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  /** What the server answers now; the text of the failure while it restarts. */
  const answer = async () => {
    try {
      return await (await fetch(url)).text();
    } catch (error) {
      return String(error);
    }
  };
  try {
    await expect.poll(answer).toBe("one first a");
    await write("worker.ts", source("b"));
    await expect.poll(answer).toBe("one first b");
    await write("wrangler.jsonc", '{ "vars": { "WORD": "two" } }');
    await expect.poll(answer).toBe("two first b");
    await write("worker.ts", "export default {");
    await expect.poll(() => errors).toContain("worker.ts:1:16:");
    expect(await answer()).toBe("two first b");
    await write("text.txt", "second");
    await write("worker.ts", source("c"));
    await expect.poll(answer).toBe("two second c");
  } finally {
    const exit = once(child, "exit");
    child.kill("SIGTERM");
    await exit;
    await rm(folder, { recursive: true, force: true });
  }
});
