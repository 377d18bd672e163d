/** The event table of instances: how it is created, and that all its times have one form. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../test/support/test-server.ts";
import { SECRET, sendGeneric } from "../../../../test/support/webhook-sender.ts";
import { BASE_SCHEMA } from "../agents/index.ts";
import { Templates } from "../engines/instance-store/journal/template.ts";
import { EVENT_SCHEMA } from "./event-table.ts";

const MODULE = join(import.meta.dirname, "../../../../test/fixtures/event-writing-agents.ts");
/** Offset of the schema cookie in the database header (SQLite file format, section 1.3). Every change of the schema increments it. */
const SCHEMA_COOKIE = 40;

const optionsOf = (module: string): TestServerOptions => ({
  environment: { WEBHOOK_SECRET: SECRET, WRITE_WEBHOOK_SECRET: SECRET },
  file: {
    agents: { modules: [module] },
    webhooks: { sources: { write: { scheme: "generic", agent: "writing-agent" } } },
  },
});

let folder: string;
let server: TestServer;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-events-"));
  server = await startTestServer(optionsOf(MODULE));
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function call<T>(
  name: string,
  method: string,
  args: unknown[] = [],
  agent = "writing-agent",
  at = server,
) {
  const { status, body } = await at.api("POST", `/agents/${agent}/${name}/rpc/${method}`, args);
  return status === 200 ? (body.result as T) : status;
}

const databasesOf = (dataDir: string) =>
  readdirSync(join(dataDir, "agents"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".db"))
    .map((file) => join(dataDir, "agents", file));

/** Runs the work on a server that uses the folder, and stops it, so that the files can be read. */
async function during(
  dataDir: string,
  module: string,
  work: (at: TestServer) => Promise<void>,
): Promise<void> {
  const at = await startTestServer({ ...optionsOf(module), dataDir });
  try {
    await work(at);
  } finally {
    await at.stop();
  }
}

describe("an instance's table of events", () => {
  it("exists when the instance is created, and the first event does not change the schema", async () => {
    const dataDir = join(folder, "first");
    await during(dataDir, MODULE, async (at) => {
      expect((await sendGeneric(at.url, "entity", { id: "1" })).status).toBe(200);
    });
    const [file = ""] = databasesOf(dataDir);
    const created = Buffer.from(new Templates(BASE_SCHEMA).find(EVENT_SCHEMA).bytes);
    expect(readFileSync(file).readUInt32BE(SCHEMA_COOKIE)).toBe(created.readUInt32BE(SCHEMA_COOKIE));
    const database = new DatabaseSync(file, { readOnly: true });
    expect(database.prepare("SELECT id FROM events").all()).toEqual([{ id: "1" }]);
    database.close();
  });

  it("does not exist in agents that store no events", async () => {
    expect(await call("any", "tables", [], "plain-agent")).toEqual([]);
  });

  it("is created when an existing class becomes a WebhookAgent", async () => {
    const dataDir = join(folder, "became");
    const [before, after] = ["before.ts", "after.ts"].map((name) => join(folder, name)) as [string, string];
    writeFileSync(
      before,
      `import { Agent } from "signalbox";
       export class WritingAgent extends Agent { static callable = ["ping"]; ping() { this.setState({}); } }`,
    );
    // A script in onStart, without super.onStart(): the first statement that may write to the table is the subclass's own.
    writeFileSync(
      after,
      `import { WebhookAgent } from "signalbox";
       export class WritingAgent extends WebhookAgent {
         onStart() { this.sql(["CREATE TABLE IF NOT EXISTS a (x); CREATE TABLE IF NOT EXISTS b (x)"]); }
       }`,
    );
    await during(dataDir, before, async (at) => {
      expect(await call("x", "ping", [], "writing-agent", at)).not.toBe(500);
    });
    await during(dataDir, after, async (at) => {
      expect((await sendGeneric(at.url, "write/x", { id: "1" })).status).toBe(200);
      expect(await call<{ id: string }[]>("x", "getEvents", [], "writing-agent", at)).toMatchObject([
        { id: "1" },
      ]);
    });
  });

  it("keeps a trigger that exists", async () => {
    const dataDir = join(folder, "earlier");
    await during(dataDir, MODULE, async (at) => {
      await sendGeneric(at.url, "write/x", { id: "1" });
      await call("x", "insert", ["own", 1767225600000], "writing-agent", at);
      expect(await call("x", "hasTrigger", [], "writing-agent", at)).toBe(true);
    });
    await during(dataDir, MODULE, async (at) => {
      await sendGeneric(at.url, "write/x", { id: "2" });
      expect(await call("x", "hasTrigger", [], "writing-agent", at)).toBe(true);
    });
  });
});

describe("times written by an agent itself", () => {
  const TIME = "2026-01-01T00:00:00.000Z";
  const start = (name: string) => sendGeneric(server.url, `write/${name}`, { id: "first" });

  it("need a trigger only when the agent inserts events: events, reads and writes to other tables create none", async () => {
    await start("reader");
    await call("reader", "look");
    expect(await call("reader", "hasTrigger")).toBe(false);
  });

  it.each([
    ["an insert", "insert"],
    ["a replacement", "replace"],
    ["one of several statements", "insertByScript"],
    ["a trigger of the agent's own", "insertByTrigger"],
  ])("are converted when they are written by %s", async (_how, method) => {
    await start(method);
    await call(method, method, ["own", Date.parse(TIME)]);
    expect(await call(method, "times")).toContainEqual(["own", TIME]);
  });

  it("are converted also after a failed turn has rolled back the trigger", async () => {
    await start("failing");
    expect(await call("failing", "insertAndFail", ["lost", Date.parse(TIME)])).toBe(500);
    expect(await call("failing", "hasTrigger")).toBe(false);
    await call("failing", "insert", ["kept", Date.parse(TIME) / 1000]);
    expect(await call("failing", "times")).toEqual([
      ["first", expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)],
      ["kept", TIME],
    ]);
  });
});
