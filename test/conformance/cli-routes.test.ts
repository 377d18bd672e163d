/** `signalbox routes` and `signalbox circuits` against a running server. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const cli = (...args: string[]) => runCommand(server, args);

const to = (elementId: string) => ({ elementId });
const graph = (second: string) => [
  { id: "start", type: "start", outputs: { next: to("plan") } },
  {
    id: "plan",
    type: "conditional",
    properties: { conditions: { "metadata.plan": "pro" } },
    outputs: { true: to("first"), false: to("second") },
  },
  {
    id: "first",
    type: "model",
    properties: { provider: "openai", model: "large" },
    outputs: { success: to("end"), fallback: to("second") },
  },
  {
    id: "second",
    type: "model",
    properties: { provider: "echo", model: second },
    outputs: { success: to("end") },
  },
  { id: "end", type: "end" },
];

it("a route is created from a file, tried, changed, rolled back, renamed and deleted", async () => {
  await writeFile(join(server.dataDir, "one.json"), JSON.stringify(graph("echo")));
  await writeFile(join(server.dataDir, "two.json"), JSON.stringify({ elements: graph("echo-2") }));
  const created = await cli("routes", "create", "support", "one.json");
  expect(created.out).toMatch(/^deployed version \w+; call it as dynamic\/support\n$/);
  expect((await cli("routes", "list")).out).toContain("dynamic/support");
  expect((await cli("routes", "show", "support")).out).toContain("true → first, false → second");
  expect((await cli("routes", "try", "support")).out).toBe(
    "start (start) → next\nplan (conditional) → false\nsecond (model)\ncalls echo/echo\n",
  );
  const pro = ["routes", "try", "support", "--metadata", '{"plan":"pro"}'];
  expect((await cli(...pro)).out).toContain("calls openai/large");
  expect((await cli(...pro, "--failing", "first")).out).toContain("first (model) → fallback\n");
  expect((await cli("routes", "try", "support", "--file", "two.json")).out).toContain("calls echo/echo-2");
  const none = await cli("routes", "try", "support", "--failing", "second");
  expect(none).toMatchObject({ code: 1, out: expect.stringContaining("error: ") as string });

  expect((await cli("routes", "deploy", "support", "two.json", "--draft")).out).toContain("saved version");
  expect((await cli("routes", "try", "support")).out).toContain("calls echo/echo\n");
  await cli("routes", "deploy", "support", "two.json");
  expect((await cli("routes", "try", "support")).out).toContain("calls echo/echo-2\n");
  const versions = JSON.parse((await cli("routes", "versions", "support", "--json")).out) as {
    version_id: string;
  }[];
  expect(versions).toHaveLength(3);
  await cli("routes", "deploy", "support", "--version-id", versions.at(-1)?.version_id ?? "");
  expect((await cli("routes", "try", "support")).out).toContain("calls echo/echo\n");

  expect((await cli("routes", "rename", "support", "help")).out).toBe("renamed support to help\n");
  expect((await cli("routes", "delete", "help")).out).toBe("deleted route help\n");
  expect((await cli("routes", "list")).out).toContain("no routes");
});

it("mistakes are named", async () => {
  expect((await cli("routes", "show", "none")).err).toContain('no route is named "none"');
  expect((await cli("routes", "create", "x", "gone.json")).err).toContain("cannot read gone.json");
  await writeFile(join(server.dataDir, "bad.json"), JSON.stringify(graph("echo").slice(0, 2)));
  const bad = await cli("routes", "create", "x", "bad.json");
  expect(bad).toMatchObject({ code: 1, err: expect.stringContaining('element "plan"') as string });
});

it("circuits are listed and closed", async () => {
  expect((await cli("circuits", "list")).out).toContain("no failures");
  expect((await cli("circuits", "close")).out).toBe("closed 0 circuits\n");
});
