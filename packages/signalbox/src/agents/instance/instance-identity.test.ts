/** The file of an instance contains its identity. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startServerProcess } from "../../../../../test/support/server-process.ts";
import { ROOT_TOKEN, startTestServer } from "../../../../../test/support/test-server.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-identity-"));
  writeFileSync(
    join(folder, "agents.ts"),
    `import { Agent } from "signalbox";
     export class Thing extends Agent {
       static callable = ["read", "write", "writeAndFail"];
       read() { return this.state ?? null; }
       write() { this.setState({ written: true }); }
       writeAndFail() { this.setState({ written: true }); throw new Error("after the write"); }
     }
     export class Stillborn extends Agent {
       static callable = ["read"];
       onStart() { this.setState({}); throw new Error("cannot start"); }
       read() {}
     }`,
  );
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it.each([
  ["that wrote something", "thing", ["write"]],
  ["that was only read", "thing", ["read"]],
  ["whose first turn failed", "thing", ["writeAndFail"]],
  ["whose first turn failed before another wrote", "thing", ["writeAndFail", "write", "write"]],
  ["that could not start", "stillborn", ["read"]],
])("an instance %s has its identity in its file", async (_what, agent, methods) => {
  const dataDir = join(folder, "data");
  // Twice: the second load finds a database that is not new, and does not write the identity again.
  for (let load = 0; load < 2; load++) {
    const server = await startTestServer({
      dataDir,
      file: { agents: { modules: [join(folder, "agents.ts")] } },
    });
    for (const method of methods) await server.api("POST", `/agents/${agent}/its-name/rpc/${method}`, []);
    await server.stop();
  }
  expectKnown(dataDir, agent);
});

it("an instance that was only read has its identity in its file when the process is killed after the response", async () => {
  const dataDir = join(folder, "data");
  const config = join(folder, "signalbox.config.json");
  writeFileSync(config, JSON.stringify({ agents: { modules: [join(folder, "agents.ts")] } }));
  const killed = await startServerProcess(["--data-dir", dataDir, "--config", config], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });
  const answer = await fetch(`${killed.url}/agents/thing/its-name/rpc/read`, {
    method: "POST",
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  expect(answer.status).toBe(200);
  await killed.end("SIGKILL");
  const server = await startTestServer({ dataDir });
  await server.stop();
  expectKnown(dataDir, "thing");
});

function expectKnown(dataDir: string, agent: string): void {
  const [file = ""] = readdirSync(join(dataDir, "agents"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".db"),
  );
  const database = new DatabaseSync(join(dataDir, "agents", file), { readOnly: true });
  const rows = database.prepare("SELECT key, value FROM _signalbox_meta ORDER BY key").all();
  database.close();
  expect(rows).toMatchObject([
    { key: "account", value: "default" },
    { key: "agent", value: agent },
    { key: "created_at", value: expect.stringMatching(/^\d{13}$/) },
    { key: "name", value: "its-name" },
  ]);
}
