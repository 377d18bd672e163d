/** Limits while PostgreSQL is gone, crashes or comes back, and amounts that an earlier version had stored. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { sql } from "../../core/sql.ts";
import { importAmounts } from "./import-amounts.ts";
import { gatewayOwner } from "./limits.ts";
import { NamedBucket } from "./rule-buckets.ts";
import {
  aboutAnHour,
  demandOf,
  gatewayWith,
  openSharedCluster,
  request,
  reserve,
  rowOf,
  type SharedCluster,
  type SharedNode,
  usedOf,
} from "./shared-limits-fixture.ts";
import { SpendJournal } from "./spend-journal.ts";
import { createWindow } from "./window.ts";

let cluster: SharedCluster;
let nodes: SharedNode[];

beforeAll(async () => {
  cluster = await openSharedCluster();
  nodes = [];
  for (let i = 0; i < 3; i++) nodes.push(await cluster.openNode());
});
afterAll(() => cluster.close());

it("crashes of PostgreSQL under load: exactly the limit passes", async () => {
  const limit = 400;
  const gateway = gatewayWith({ rate_limiting_limit: limit, rate_limiting_interval: aboutAnHour() });
  let passed = 0;
  let crashes = 0;
  const crashing: Promise<void>[] = [];
  let isUp = true;
  const crash = async () => {
    crashes += 1;
    isUp = false;
    await cluster.server.stop("kill");
    await cluster.server.start();
    isUp = true;
  };
  const caller = async (node: SharedNode) => {
    for (;;) {
      const refusal = await request(node, gateway);
      if (refusal === null) passed += 1;
      else if (refusal.id === "gateway_rate_limited") return;
      else expect(refusal).toMatchObject({ id: "storage_unavailable", status: 503 });
      if (passed > crashes * 100 + 60 && crashes < 3 && isUp) crashing.push(crash());
    }
  };
  await Promise.all(nodes.flatMap((node) => Array.from({ length: 8 }, () => caller(node))));
  await Promise.all(crashing);
  expect({ passed, crashes }).toEqual({ passed: limit, crashes: 3 });
  await expect
    .poll(async () => usedOf(await rowOf(cluster.database, gateway, "requests /rate_limiting")))
    .toBe(limit);
});

it("without PostgreSQL, calls pass out of what the node had taken, and are then refused with 503", async () => {
  const [node] = nodes as [SharedNode];
  const gateway = gatewayWith({ rate_limiting_limit: 1_000_000, rate_limiting_interval: 3600 });
  let passed = 0;
  let isGone = false;
  let refusal = await request(node, gateway);
  // The node takes ahead for its traffic. Nothing passes while PostgreSQL is being stopped, which takes long on a busy machine.
  for (let i = 0; refusal === null; i++) {
    if (isGone) passed += 1;
    if (i === 500) {
      await cluster.server.freeze();
      isGone = true;
    }
    await new Promise(setImmediate);
    refusal = await request(node, gateway);
  }
  expect(passed).toBeGreaterThan(0);
  expect(refusal).toMatchObject({
    id: "storage_unavailable",
    status: 503,
    headers: { "retry-after": "1" },
  });
  await cluster.server.thaw();
  await expect.poll(() => request(node, gateway)).toBeNull();
});

it("amounts of an earlier version count, those in its journal too, once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-journal-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [node] = nodes as [SharedNode];
  const gateway = gatewayWith({}, [{ id: "r", limitType: "cost", limit: 10, window: "month" }]);
  const owner = gatewayOwner(gateway);
  const window = createWindow("month");
  const now = node.ledger.now();
  const slot = window.slotOf(now);
  const end = window.endOf(slot);
  await cluster.database.run(
    sql`INSERT INTO account (id, name, created_at) VALUES ('default', 'default', 0) ON CONFLICT DO NOTHING`,
  );
  await cluster.database.run(
    sql`INSERT INTO limit_amount (account_id, owner, bucket, slot_start, ends_at, amount)
        VALUES ('default', ${owner.key}, 'r', ${slot}, ${end}, 4000000)`,
  );
  const writeJournal = () => {
    const journal = new SpendJournal({ folder, newId: "j", onError: () => undefined });
    journal.begin([]);
    journal.settled(1, [{ bucket: new NamedBucket(window, owner, "r", true), slot, end, amount: 3_000_000 }]);
    journal.close();
  };
  writeJournal();
  await importAmounts(cluster.database, folder, now);
  // The process was killed before it removed the journal.
  writeJournal();
  await importAmounts(cluster.database, folder, now);
  expect(await reserve(node, gateway, demandOf(4))).toMatchObject({ fields: { spent: 7 } });
  expect(await reserve(node, gateway, demandOf(3))).toBeTypeOf("function");
});
