/** The door that webhooks use, on a real runtime. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEEN } from "../../../../test/fixtures/address-agent.ts";
import { TEST_AGENTS, webhookEvent } from "../../../../test/support/agents.ts";
import { Accounts, Authenticator, BrowserSessions, LoginCodes, Sessions, Tokens } from "../accounts/index.ts";
import { loadConfig } from "../config/index.ts";
import { checkConfigFile } from "../config/read-config-file.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { SharedPlaces } from "../core/shared-pool.ts";
import { Secret } from "../core/secret.ts";
import { OutgoingWebhooks } from "../outgoing/index.ts";
import { migrate } from "../database/migrate.ts";
import { ResourceEvents } from "../contracts/resource-events.ts";
import { openInstanceStore } from "../engines/instance-store/index.ts";
import { SqliteDatabase } from "../database/sqlite/sqlite-database.ts";
import { createLogger } from "../telemetry/logger.ts";
import { TestClock } from "../testing/test-clock.ts";
import { type AgentsArea, BASE_SCHEMA, createAgentsArea, RESERVED_NAMES } from "./index.ts";

const ADDRESS_AGENT = join(import.meta.dirname, "../../../../test/fixtures/address-agent.ts");

let folder: string;
let database: SqliteDatabase;
let area: AgentsArea;

function fail(error: Error): never {
  throw error;
}

/** As the service does: the address is known when it listens. */
async function openArea(clock: Clock = systemClock, listens = true): Promise<() => Promise<void>> {
  const server = { url: "" };
  const listen = async () => {
    server.url = "http://127.0.0.1:8787";
    await area.begin?.();
  };
  const config = await loadConfig({ dataDir: folder }, {}, folder);
  database = await SqliteDatabase.open(join(folder, "signalbox.db"), fail);
  await migrate(database);
  const resourceEvents = new ResourceEvents();
  const tokens = new Tokens(database, systemClock, resourceEvents);
  area = createAgentsArea({
    config: {
      ...config,
      file: checkConfigFile({ agents: { modules: [TEST_AGENTS, ADDRESS_AGENT] } }, "test"),
    },
    logger: createLogger({ level: "silent", isPretty: false }),
    clock,
    tracing: { turns: null },
    alertFeed: { current: null },
    database,
    steadyClock: clock,
    cluster: null,
    instanceStore: await openInstanceStore("journal", {
      folder: join(folder, "agents"),
      baseSchema: BASE_SCHEMA,
      reservedNames: RESERVED_NAMES,
      segmentBytes: 2 ** 20,
      onFailure: fail,
      onStall: fail,
    }),
    authenticator: new Authenticator({
      rootToken: new Secret("root"),
      tokens,
      sessions: new BrowserSessions(
        new Sessions(database, systemClock, tokens, new Secret("root")),
        new LoginCodes(database, systemClock),
        {
          allowedHosts: [],
        },
      ),
    }),
    accounts: new Accounts(database, systemClock),
    places: new SharedPlaces(100),
    resourceEvents,
    registry: new Registry(),
    outgoing: new OutgoingWebhooks({ allowPrivateHosts: false, clock: systemClock }),
    ownAgents: [],
    server,
    builtInAgents: [],
    variables: {},
    tagFeed: { newestPosition: async () => 0, follow: async function* () {} },
  });
  await area.start?.();
  if (listens) await listen();
  return listen;
}

async function closeArea(): Promise<void> {
  await area.stop?.();
  await database.close();
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-agents-"));
  await openArea();
});
afterAll(async () => {
  await closeArea();
  await rm(folder, { recursive: true, force: true });
});

const target = (name: string) => ({ account: "default", agent: "event-agent", name });
const kindOf = async (name: string, id: string, type?: string) =>
  (await area.deliveries.deliver(target(name), webhookEvent(id, type))).kind;

describe("deliver", () => {
  it("reports which agents exist", () => {
    expect(area.deliveries.hasAgent("event-agent")).toBe(true);
    expect(area.deliveries.hasAgent("nobody")).toBe(false);
  });

  it("runs an event once, also after a restart", async () => {
    expect(await kindOf("a", "1")).toBe("processed");
    expect(await kindOf("a", "1")).toBe("duplicate");
    await closeArea();
    await openArea();
    expect(await kindOf("a", "1")).toBe("duplicate");
    expect(await kindOf("a", "2")).toBe("processed");
  });

  it("runs concurrent duplicates once, whether or not the handler waits", async () => {
    const kinds = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        kindOf("b", i % 2 === 0 ? "x" : "y", i % 2 === 0 ? "push" : "wait"),
      ),
    );
    expect(kinds.filter((kind) => kind === "processed")).toHaveLength(2);
    expect(kinds.filter((kind) => kind === "duplicate")).toHaveLength(48);
  });

  it("rolls back a failed handler together with its ledger entry, so that the next delivery runs", async () => {
    await expect(kindOf("c", "1", "fail")).rejects.toThrow("refused");
    expect(await kindOf("c", "1", "push")).toBe("processed");
  });

  it("runs the next delivery when a plain function has returned a promise that failed", async () => {
    const promising = { account: "default", agent: "promising-agent", name: "p" };
    const deliver = (type: string) => area.deliveries.deliver(promising, webhookEvent("1", type));
    await expect(deliver("fail")).rejects.toThrow("refused");
    expect([(await deliver("push")).kind, (await deliver("push")).kind]).toEqual(["processed", "duplicate"]);
  });

  it("reports work that was added to the queue as queued", async () => {
    expect(await kindOf("d", "1", "queue")).toBe("queued");
  });

  it("keeps entities and sources apart", async () => {
    expect(await kindOf("e", "1")).toBe("processed");
    expect(await kindOf("f", "1")).toBe("processed");
    const other = { ...webhookEvent("1"), source: "github" };
    expect((await area.deliveries.deliver(target("e"), other)).kind).toBe("processed");
  });

  it("passes the delivery to onRequest of an agent without onEvent", async () => {
    const plain = { account: "default", agent: "plain-agent", name: "p" };
    const event = webhookEvent("9", "ping");
    expect(await area.deliveries.deliver(plain, event)).toEqual({
      kind: "answered",
      status: 201,
      contentType: "text/plain;charset=UTF-8",
      body: 'ping:{"id":"9"}',
    });
    expect((await area.deliveries.deliver(plain, event)).kind).toBe("duplicate");
  });

  it("refuses unknown agents and invalid names", async () => {
    await expect(
      area.deliveries.deliver({ account: "default", agent: "nobody", name: "x" }, webhookEvent("1")),
    ).rejects.toThrow("Agent not found");
    await expect(area.deliveries.deliver(target(""), webhookEvent("1"))).rejects.toThrow(
      "Invalid instance name",
    );
  });
});

it("work that is overdue at the start runs when the service listens, and knows its address", async () => {
  const addresses: unknown[] = [];
  (globalThis as { [SEEN]?: unknown[] })[SEEN] = addresses;
  const planner = { account: "default", agent: "address-agent", name: "a" };
  await closeArea();
  await openArea(new TestClock(1_800_000_000_000));
  await area.deliveries.deliver(planner, webhookEvent("1"));
  await closeArea();

  const listen = await openArea(new TestClock(1_800_000_120_000), false);
  // What takes at least as long as waking an instance.
  for (const id of ["1", "2", "3"]) expect(await kindOf("beside", id)).toBe("processed");
  expect(addresses).toEqual([]);
  await listen();
  await expect.poll(() => addresses).toEqual(["http://127.0.0.1:8787"]);
});
