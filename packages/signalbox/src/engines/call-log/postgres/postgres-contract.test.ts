import { afterAll, beforeAll } from "vitest";
import type { TestStorage } from "../call-log-fixture.ts";
import { describeChanges } from "../changes-contract.ts";
import { describeReading } from "../reading-contract.ts";
import { describeScans } from "../scan-contract.ts";
import { describeTotals } from "../totals-contract.ts";
import { describeUsageBy } from "../usage-by-contract.ts";
import { describeUsage } from "../usage-contract.ts";
import { PostgresLogs, type PostgresStorage } from "./postgres-log-fixture.ts";

const TABLES =
  "call_log, call_log_body, call_log_hour, call_log_totals, call_log_totals_delta, call_log_count, call_log_day, call_log_gateway";

let logs: PostgresLogs;
let storage: PostgresStorage;
beforeAll(async () => {
  logs = await PostgresLogs.start();
  storage = await logs.openStorage();
});
afterAll(async () => {
  await storage.remove();
  await logs.stop();
});

/** One database for all tests: a new one takes longer than a test. */
function openEmpty(): Promise<TestStorage> {
  return Promise.resolve({
    openLog: (options) => storage.openLog(options),
    isAllCounted: () => storage.isAllCounted(),
    remove: async () => void (await storage.query(`TRUNCATE ${TABLES}`)),
  });
}

describeReading("PostgreSQL", openEmpty);
describeChanges("PostgreSQL", openEmpty);
describeUsage("PostgreSQL", openEmpty);
describeUsageBy("PostgreSQL", openEmpty);
describeTotals("PostgreSQL", openEmpty);
describeScans("PostgreSQL", openEmpty);
