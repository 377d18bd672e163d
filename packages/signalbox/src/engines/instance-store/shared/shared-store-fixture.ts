/** A PostgreSQL with empty tables for each test, and nodes that share it. */
import { afterAll, beforeAll, beforeEach } from "vitest";
import { Client } from "pg";
import { openTestPostgres, type TestPostgres } from "../../../../../../test/support/test-postgres.ts";
import type { InstanceStoreOptions } from "../instance-store.ts";
import { History } from "./history.ts";
import type { Nodes } from "../index.ts";
import { SharedStore, type SharedStoreOptions } from "./shared-store.ts";

/** A node of a test. It is dead for the others unless it is added to the living ones. */
export class TestNode implements Nodes {
  readonly living: Set<string>;
  self: string;
  isLeaseFresh = true;

  constructor(self: string, living: Set<string>) {
    this.self = self;
    this.living = living;
  }

  readLiving(): Promise<ReadonlySet<string>> {
    return Promise.resolve(this.living);
  }
}

export interface SharedTables {
  readonly postgres: TestPostgres;
  readonly living: Set<string>;
  /** Runs a statement; returns its rows. */
  query<Row extends object>(text: string, values?: unknown[]): Promise<Row[]>;
  /** The next node starts a store on the disk. */
  start(
    options: Omit<InstanceStoreOptions, "segmentBytes">,
    more?: Partial<SharedStoreOptions>,
  ): Promise<{ store: SharedStore; node: TestNode }>;
}

const ROOMY = 2 ** 30;

export function useSharedTables(): SharedTables {
  let postgres: TestPostgres;
  let client: Client;
  let incs = 0;
  const living = new Set<string>();
  const connect = async () => {
    client = new Client({ connectionString: postgres.url });
    client.on("error", () => undefined);
    await client.connect();
    // One test has a standby that never answers.
    await client.query("SET synchronous_commit = local");
  };
  beforeAll(async () => {
    postgres = await openTestPostgres();
    const history = new History(postgres.url);
    await history.open();
    await history.close();
    await connect();
  });
  beforeEach(async () => {
    living.clear();
    // One test stops the server.
    await client.query("SELECT 1").catch(connect);
    await client.query("TRUNCATE agent_owner, agent_log, agent_part, agent_template");
  });
  afterAll(async () => {
    // One test ends the sessions of the server.
    await client.end().catch(() => undefined);
    await postgres.drop();
  });
  return {
    get postgres() {
      return postgres;
    },
    living,
    query: async <Row extends object>(text: string, values: unknown[] = []) =>
      (await client.query<Row>(text, values)).rows,
    async start(options, more = {}) {
      incs += 1;
      const node = new TestNode(String(incs), living);
      const store = await SharedStore.open({
        ...options,
        stores: [postgres.url],
        nodes: node,
        maxCacheBytes: ROOMY,
        onError: fail,
        ...more,
      });
      return { store, node };
    },
  };
}

function fail(error: unknown): never {
  throw error;
}
