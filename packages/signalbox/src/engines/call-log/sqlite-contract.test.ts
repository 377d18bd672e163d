import { openSqliteStorage } from "./call-log-fixture.ts";
import { describeChanges } from "./changes-contract.ts";
import { describeReading } from "./reading-contract.ts";
import { describeScans } from "./scan-contract.ts";
import { describeTotals } from "./totals-contract.ts";
import { describeUsageBy } from "./usage-by-contract.ts";
import { describeUsage } from "./usage-contract.ts";

describeReading("SQLite", openSqliteStorage);
describeChanges("SQLite", openSqliteStorage);
describeUsage("SQLite", openSqliteStorage);
describeUsageBy("SQLite", openSqliteStorage);
describeTotals("SQLite", openSqliteStorage);
describeScans("SQLite", openSqliteStorage);
