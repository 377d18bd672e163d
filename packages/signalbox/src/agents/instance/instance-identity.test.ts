/** Whose a file is stands in the file itself. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startTestServer } from "../../../../../test/support/test-server.ts";

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
])("an instance %s is known by its file", async (_what, agent, methods) => {
  const dataDir = join(folder, "data");
  // Twice: what the second life finds is not new, and is not written down again.
  for (let life = 0; life < 2; life++) {
    const server = await startTestServer({
      dataDir,
      file: { agents: { modules: [join(folder, "agents.ts")] } },
    });
    for (const method of methods) await server.api("POST", `/agents/${agent}/its-name/rpc/${method}`, []);
    await server.stop();
  }
  const [file = ""] = readdirSync(join(dataDir, "agents"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".db"),
  );
  const database = new DatabaseSync(join(dataDir, "agents", file), { readOnly: true });
  const rows = database.prepare("SELECT key, value FROM _signalbox_meta ORDER BY key").all();
  database.close();
  expect(rows).toMatchObject([
    { key: "agent", value: agent },
    { key: "created_at", value: expect.stringMatching(/^\d{13}$/) },
    { key: "name", value: "its-name" },
  ]);
});
