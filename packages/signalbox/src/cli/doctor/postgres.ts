/** Judges what PostgreSQL tells about itself. */
import { inspectPostgres, type PostgresFacts } from "../../database/postgres/inspect.ts";
import { fail, type Finding, ok, type Patient, warn } from "./finding.ts";

const MIN_VERSION = 150_000;
/** Tokens and leases compare times of nodes with those of the database. */
const MAX_SKEW_MS = 500;
const LOCAL = /^(?:localhost|127\.|\[::1\]|\/|%2f|:|$)/i;

export async function checkPostgres({ databaseUrls }: Patient): Promise<Finding[]> {
  const all = await Promise.all(databaseUrls.map((url) => checkDatabase(url)));
  return all.flat();
}

async function checkDatabase(url: string): Promise<Finding[]> {
  const servers = await inspectPostgres(url);
  const findings = servers.flatMap(({ address, facts }) =>
    facts instanceof Error ? [unreachable(address, facts)] : judge(facts),
  );
  const reached = servers.flatMap(({ facts }) => (facts instanceof Error ? [] : [facts]));
  if (reached.length > 0 && reached.every(({ isStandby }) => isStandby))
    findings.push(
      fail("postgresql", "no server accepts writes: all are standbys", "name the primary in DATABASE_URL"),
    );
  return findings;
}

/** The driver's messages contain no password. */
function unreachable(address: string, error: Error): Finding {
  const { code } = error as { readonly code?: unknown };
  const why = error.message || (typeof code === "string" ? code : "no answer");
  return fail(
    "postgresql",
    `${address}: ${why}`,
    "start PostgreSQL, or correct --database-url (DATABASE_URL)",
  );
}

export function judge(facts: PostgresFacts): Finding[] {
  const { address, schema } = facts;
  const findings: Finding[] = [];
  const add = (isGood: boolean, finding: () => Finding) => {
    if (!isGood) findings.push(finding());
  };
  const check = "postgresql";
  add(facts.versionNumber >= MIN_VERSION, () =>
    fail(check, `${address} is PostgreSQL ${facts.version}`, "upgrade to PostgreSQL 15 or newer"),
  );
  add(facts.canCreate || facts.isStandby, () =>
    fail(
      check,
      `${address}: the user may not create tables`,
      "GRANT CREATE ON SCHEMA public TO the user, or make it the owner of the database",
    ),
  );
  add(facts.isEncrypted || LOCAL.test(address), () =>
    warn(check, `${address}: the connection has no TLS`, "add ?sslmode=require to the connection string"),
  );
  add(Math.abs(facts.skewMs) <= MAX_SKEW_MS + facts.uncertaintyMs, () =>
    warn(
      check,
      `${address}: its clock differs by ${facts.skewMs} ms`,
      "synchronize the clocks of both machines (NTP)",
    ),
  );
  const free = facts.maxConnections - facts.usedConnections;
  add(free >= facts.neededConnections, () =>
    warn(
      check,
      `${address}: ${free} of ${facts.maxConnections} connections are free, a node needs up to ${facts.neededConnections}`,
      "raise max_connections",
    ),
  );
  add(schema.unusable.length === 0, () =>
    fail(
      check,
      `${address} was written by a newer version (migration ${schema.unusable.join(", ")})`,
      "upgrade Signalbox, or use another database",
    ),
  );
  for (const { name, value, isSafe, note } of facts.settings)
    add(isSafe, () => warn(check, `${address}: ${name} is ${value}: ${note}`, `set ${name} = on`));
  if (findings.length > 0) return findings;
  const state =
    schema.newest === null
      ? "no tables yet"
      : schema.newest < schema.known
        ? `schema ${schema.newest}, the next start updates it to ${schema.known}`
        : `schema ${schema.newest}`;
  return [
    ok(check, `${address}, PostgreSQL ${facts.version}${facts.isStandby ? ", standby" : ""}, ${state}`),
  ];
}
