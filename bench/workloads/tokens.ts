/** The token index: loading 100,000 tokens at start, and the look-up on every request, known and unknown. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateToken } from "../../packages/protocol/src/index.ts";
import { Accounts, Tokens } from "../../packages/signalbox/src/accounts/index.ts";
import { hashToken } from "../../packages/signalbox/src/accounts/token-index.ts";
import { systemClock } from "../../packages/signalbox/src/core/clock.ts";
import { migrate } from "../../packages/signalbox/src/database/migrate.ts";
import { ResourceEvents } from "../../packages/signalbox/src/contracts/resource-events.ts";
import { sql } from "../../packages/signalbox/src/core/sql.ts";
import { SqliteDatabase } from "../../packages/signalbox/src/database/sqlite/sqlite-database.ts";
import type { Workload } from "../support/workload.ts";

const TOKEN_COUNT = 100_000;
const LOOKUPS = 200_000;
const LOAD = "load 100,000 tokens";
const KNOWN = "look up a known token";
const UNKNOWN = "look up an unknown token";

/** The policy of a virtual key with every kind of limit. */
function policyOf(i: number): string {
  return JSON.stringify({
    budgets: [
      { limit: 10, window: "month", reset: "fixed", timezone: "UTC" },
      { limit: 1, window: "day", reset: "fixed", timezone: "UTC" },
    ],
    rateLimits: [
      { type: "requests", limit: 60, interval: 60 },
      { type: "parallel", limit: 4 },
    ],
    models: ["openai/gpt-5*", "anthropic/*", "!*pro*"],
    metadata: { team: `team-${i % 100}` },
    owner: `owner-${i % 1000}`,
  });
}

async function start(hasPolicy: boolean) {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  const database = await SqliteDatabase.open(join(folder, "x.db"), (error) => {
    throw error;
  });
  await migrate(database);
  await new Accounts(database, systemClock).create({ id: "default" });
  const texts = Array.from({ length: TOKEN_COUNT }, generateToken);
  await database.transaction(async (tx) => {
    for (const [i, text] of texts.entries()) {
      await tx.run(
        sql`INSERT INTO token (id, account_id, name, hash, suffix, permissions, created_at, policy, owner)
            VALUES (${`t${i}`}, ${"default"}, ${"bench"}, ${hashToken(text)}, ${text.slice(-4)}, ${"gateway.run tags.read"}, ${i},
                    ${hasPolicy ? policyOf(i) : null}, ${hasPolicy ? `owner-${i % 1000}` : null})`,
      );
    }
  });
  const unknown = Array.from({ length: 1000 }, generateToken);
  let tokens = new Tokens(database, systemClock, new ResourceEvents());
  const timeLookups = (candidates: readonly string[]) => {
    let found = 0;
    const startedAt = performance.now();
    for (let i = 0; i < LOOKUPS; i++) {
      if (tokens.authenticate(candidates[i % candidates.length] ?? "") !== undefined) found += 1;
    }
    return { time: ((performance.now() - startedAt) * 1000) / LOOKUPS, found };
  };
  return {
    async measure(scenario: string) {
      if (scenario === LOAD) {
        tokens = new Tokens(database, systemClock, new ResourceEvents());
        const startedAt = performance.now();
        await tokens.load();
        return { time: performance.now() - startedAt };
      }
      const { time, found } = timeLookups(scenario === KNOWN ? texts : unknown);
      if (found !== (scenario === KNOWN ? LOOKUPS : 0)) throw new Error("the index answered wrongly");
      return { time };
    },
    async stop() {
      await database.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const workload: Workload = {
  name: "tokens",
  summary: "the in-memory token index with 100,000 tokens",
  rounds: 5,
  contenders: [
    { name: "signalbox", start: () => start(false) },
    { name: "virtual keys", start: () => start(true) },
  ],
  scenarios: [
    { name: LOAD, metrics: [{ name: "time", unit: "ms", better: "lower" }] },
    { name: KNOWN, metrics: [{ name: "time", unit: "µs", better: "lower" }] },
    { name: UNKNOWN, metrics: [{ name: "time", unit: "µs", better: "lower" }] },
  ],
  goals: [
    {
      text: "100,000 tokens load in under 2 s, also virtual keys",
      isMet: (median) =>
        Math.max(
          median("signalbox", LOAD, "time") ?? Infinity,
          median("virtual keys", LOAD, "time") ?? Infinity,
        ) < 2000,
    },
    {
      text: "a look-up takes under 5 µs",
      isMet: (median) =>
        Math.max(
          median("signalbox", KNOWN, "time") ?? Infinity,
          median("virtual keys", KNOWN, "time") ?? Infinity,
        ) < 5,
    },
  ],
};
