import { afterAll, beforeAll } from "vitest";
import { describeChanges } from "../changes-contract.ts";
import { describeReading } from "../reading-contract.ts";
import { describeUsage } from "../usage-contract.ts";
import { PostgresLogs } from "./postgres-log-fixture.ts";

let logs: PostgresLogs;
beforeAll(async () => {
  logs = await PostgresLogs.start();
});
afterAll(() => logs.stop());

describeReading("PostgreSQL", () => logs.openStorage());
describeChanges("PostgreSQL", () => logs.openStorage());
describeUsage("PostgreSQL", () => logs.openStorage());
