/** `signalbox logs` against a real server process. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  runCliProcess,
  type ServerProcess,
  spawnCli,
  startServerProcess,
} from "../support/server-process.ts";

let dataDir: string;
let server: ServerProcess;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-cli-logs-"));
  server = await startServerProcess(["--data-dir", dataDir], { cwd: dataDir });
});
afterAll(async () => {
  await server.end("SIGTERM");
  await rm(dataDir, { recursive: true, force: true });
});

const cli = (...args: string[]) => runCliProcess([...args, "--data-dir", dataDir], { cwd: dataDir });

async function call(model: string): Promise<string> {
  const response = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "gw-aig-metadata": JSON.stringify({ for: model }) },
    body: JSON.stringify({ model, messages: [{ role: "user", content: `hello ${model}` }] }),
  });
  await response.arrayBuffer();
  return response.headers.get("gw-aig-log-id") ?? "";
}

it("stored calls are listed as a table or as JSON, with filters", async () => {
  const ids = [await call("red"), await call("blue")];
  const plain = await cli("logs", "list");
  expect(plain).toMatchObject({ code: 0, stderr: "" });
  expect(plain.stdout).toMatch(/^TIME +ID +STATUS/);
  expect(plain.stdout).toContain(ids[0]);
  const json = await cli("logs", "list", "--json", "--model", "blue", "--limit", "5");
  expect((JSON.parse(json.stdout) as { id: string }[]).map((row) => row.id)).toEqual([ids[1]]);
  const none = await cli("logs", "list", "--errors");
  expect(none.stdout).toBe("no calls\n");
});

it("one call is shown with its bodies", async () => {
  const id = await call("green");
  expect((await cli("logs", "show", id)).stdout).toMatch(/model +green\n/);
  const request = await cli("logs", "show", id, "--request");
  expect(JSON.parse(request.stdout)).toMatchObject({ model: "green" });
  const response = await cli("logs", "show", id, "--response");
  expect(JSON.parse(response.stdout)).toHaveProperty("choices");
  expect(await cli("logs", "show", "nothing")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Log not found"),
  });
});

it("invalid options are refused", async () => {
  expect((await cli("logs", "list", "--limit", "many")).code).toBe(2);
  expect((await cli("logs", "list", "--limit", "5000")).code).toBe(2);
  expect((await cli("logs", "show", "x", "--request", "--response")).code).toBe(2);
  expect(await cli("logs", "list", "--gateway", "none")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Gateway not found"),
  });
});

it("`logs tail` prints each call once when it ends", async () => {
  const before = await call("before");
  const child = spawnCli(
    ["logs", "tail", "--json", "--interval", "20", "--limit", "3", "--data-dir", dataDir],
    { cwd: dataDir },
  );
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const closed = once(child, "close");
  // The start of the tail is unknown, so calls are made until the tail has printed enough.
  const made: string[] = [];
  while (child.exitCode === null) {
    made.push(await call("during"));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await closed;
  const shown = output
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { id: string }).id);
  expect(shown).toHaveLength(3);
  expect(shown).not.toContain(before);
  const first = made.indexOf(shown[0] ?? "");
  expect(shown).toEqual(made.slice(first, first + 3));
});
