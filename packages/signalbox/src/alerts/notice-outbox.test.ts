/** What an account learns of a notice that could not be delivered, on both databases. */
import { describe, expect, it } from "vitest";
import { ENGINES } from "../../../../test/support/engines.ts";
import { sql } from "../core/sql.ts";
import { OutgoingWebhookError } from "../outgoing/index.ts";
import { createLogger } from "../telemetry/logger.ts";
import type { AlertRules } from "./alert-rules.ts";
import { NoticeOutbox } from "./notice-outbox.ts";

const NOW = Date.UTC(2026, 0, 1);
const FAILURES = [
  new OutgoingWebhookError("db.internal is a private or loopback address", { retryable: false }),
  new OutgoingWebhookError("the receiver cannot be reached: getaddrinfo ENOTFOUND", { retryable: true }),
  new OutgoingWebhookError("the receiver did not respond in time", { retryable: true }),
  new Error("getaddrinfo ENOTFOUND db.internal"),
];

describe.each(ENGINES)("on %s", (_, open) => {
  it("a receiver without a response looks the same, whether its name is unknown, private or silent", async () => {
    const { database, drop } = await open();
    const lines: string[] = [];
    const failures = new Map<string, Error>();
    const outbox = new NoticeOutbox({
      database,
      clock: { now: () => NOW },
      logger: createLogger({
        level: "debug",
        isPretty: false,
        destination: { write: (line) => lines.push(line) },
      }),
      rules: { byId: () => ({}), open: () => ({ url: "https://db.internal" }) } as unknown as AlertRules,
      outgoing: {
        send: ({ id = "" }) => Promise.reject(failures.get(id) ?? new Error("unknown")),
      },
    });
    await database.run(sql`INSERT INTO account (id, name, created_at) VALUES ('a', 'a', ${NOW})`);
    await database.run(
      sql`INSERT INTO alert_rule (id, account_id, settings, state, created_at, modified_at)
          VALUES ('r', 'a', '{}', '{}', ${NOW}, ${NOW})`,
    );
    for (const [i, failure] of FAILURES.entries()) {
      for (const attempts of [0, 8]) {
        const id = `n${i}-${attempts}`;
        failures.set(id, failure);
        await database.run(
          sql`INSERT INTO alert_notice (id, account_id, rule_id, receiver, kind, body, attempts, next_at, created_at)
              VALUES (${id}, 'a', 'r', 0, 'test', '{}', ${attempts}, ${NOW}, ${NOW})`,
        );
      }
    }
    await outbox.sendDue();
    const rows = await outbox.list("r");
    expect(rows).toHaveLength(2 * FAILURES.length);
    const shown = new Set(
      rows.map(({ attempts, next_at, problem }) => JSON.stringify([attempts, next_at, problem])),
    );
    // After the first attempt, and after the last one.
    expect(shown.size).toBe(2);
    expect([...shown].join()).not.toMatch(/ENOTFOUND|private|time/);
    // Operators find the cause in the log.
    expect(lines.join()).toContain("ENOTFOUND");
    await database.close();
    await drop();
  });
});
