/** An instance whose file is damaged fails alone, and tells its callers nothing about files. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { globSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN } from "../support/test-server.ts";

it("answers calls of a damaged instance with an internal error, and those of others as ever", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-damaged-"));
  const args = ["--data-dir", dataDir, "--agents", TEST_AGENTS];
  const options = { env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN } };
  const first = await startServerProcess(args, options);
  const before = await new RawClient(`${first.url}/agents/counter/damaged`).opened();
  expect(await before.call("increment", 1)).toMatchObject({ success: true });
  await first.end("SIGTERM");
  for (const file of globSync("agents/**/*.db", { cwd: dataDir }))
    await writeFile(
      join(dataDir, file),
      "this is not a database, and long enough to be looked at".repeat(100),
    );

  const second = await startServerProcess(args, options);
  const client = await new RawClient(`${second.url}/agents/counter/damaged`).opened();
  const { success, error } = await client.call("read").catch(() => ({ success: false, error: "closed" }));
  expect(success).toBe(false);
  expect(error).not.toContain(dataDir);
  const response = await fetch(`${second.url}/agents/counter/damaged`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  expect(response.status).toBe(500);
  const text = await response.text();
  for (const secret of [dataDir, "not a database", ".db"]) expect(text).not.toContain(secret);

  const other = await new RawClient(`${second.url}/agents/counter/other`).opened();
  expect(await other.call("increment", 1)).toMatchObject({ success: true, result: 1 });
  other.close();
  await second.end("SIGTERM");
  await rm(dataDir, { recursive: true, force: true });
});
