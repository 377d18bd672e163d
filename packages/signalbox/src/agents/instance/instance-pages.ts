/**
 * Reads pages of the catalog for operators: in several orders, and those instances that have problems. Every read is a scan, outside of the event loop's
 * thread: a search visits all instances of an agent, which may be a million.
 */
import { SignalboxError } from "@signalbox/protocol";
import { containsInPostgres, containsInSqlite } from "../../core/any-case.ts";
import { joinSql, rawSql, sql, sqlList, type SqlQuery } from "../../core/sql.ts";
import type { Database, ScanTurn } from "../../database/database.ts";
import { type CatalogEntry, type CatalogRow, fromRow } from "./instance-catalog.ts";
import { byNaturalName } from "./natural-name.ts";

export const INSTANCE_ORDERS = ["name", "last_active", "dead_letters", "queued"] as const;
export type InstanceOrder = (typeof INSTANCE_ORDERS)[number];

export const INSTANCE_PROBLEMS = ["dead_letters", "retrying", "stuck", "error"] as const;
export type InstanceProblem = (typeof INSTANCE_PROBLEMS)[number];

/** What counts as a problem. */
export interface ProblemRule {
  readonly problem: InstanceProblem | "any";
  /** Errors since then, milliseconds since the epoch. */
  readonly since: number;
}

export interface PageQuery {
  readonly account: string;
  readonly agent: string;
  /** Part of the name, case-insensitive. */
  readonly search?: string | undefined;
  readonly rule?: ProblemRule | undefined;
  /** Names of instances of the agent that are stuck. */
  readonly stuck: readonly string[];
  readonly order: InstanceOrder;
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface EntryPage {
  readonly entries: readonly CatalogEntry[];
  readonly next: string | null;
}

/** What the catalog knows of the problems of an agent's instances. */
export interface AgentProblems {
  readonly agent: string;
  readonly instances: number;
  readonly deadLetters: number;
  readonly deadLetterInstances: number;
  readonly retrying: number;
  readonly retryingInstances: number;
  readonly errors: number;
}

/** Names are sorted by their numbers up to this number of instances: all of them are read and sorted, which takes the event loop about 10 ms. */
const MAX_SORTED = 2000;
/** Long enough for the longest names in characters of three bytes. */
export const MAX_CURSOR = 2048;

const COLUMNS: Readonly<Record<Exclude<InstanceOrder, "name">, SqlQuery>> = {
  last_active: rawSql("last_active_at"),
  dead_letters: rawSql("dead_letters"),
  queued: rawSql("queued"),
};

export class InstancePages {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async page(query: PageQuery): Promise<EntryPage> {
    return query.order === "name" ? this.#byName(query) : this.#byColumn(query, query.order);
  }

  /** Instances of all agents, or of one, with problems that the catalog knows: those with the newest errors first. */
  async problems(
    account: string,
    agent: string | undefined,
    rule: ProblemRule,
    cursor: string | undefined,
    limit: number,
  ): Promise<EntryPage> {
    let after = sql``;
    if (cursor !== undefined) {
      const [at, lastAgent, lastName] = parseCursor(cursor, 3);
      after = sql`WHERE (coalesce(last_error_at, 0) < ${Number(at)} OR (coalesce(last_error_at, 0) = ${Number(at)}
        AND (agent, name) > (${String(lastAgent)}, ${String(lastName)})))`;
    }
    const rows = await this.#database.scan<CatalogRow>(
      sql`SELECT * FROM ${withProblem(account, agent, rule)} AS found ${after}
          ORDER BY coalesce(last_error_at, 0) DESC, agent, name LIMIT ${limit + 1}`,
      { account, kind: "page" },
    );
    return toPage(rows.map(fromRow), limit, ({ agent: ofAgent, name, lastErrorAt }) =>
      toCursor([lastErrorAt ?? 0, ofAgent, name]),
    );
  }

  /** Of each agent with problems, or of one. */
  async problemsByAgent(account: string, agent: string | undefined, since: number): Promise<AgentProblems[]> {
    const rows = await this.#database.scan<Record<keyof AgentProblems, number | string | null>>(
      sql`SELECT agent, count(*) AS instances, sum(dead_letters) AS "deadLetters", sum(retrying) AS retrying,
            count(CASE WHEN dead_letters > 0 THEN 1 END) AS "deadLetterInstances",
            count(CASE WHEN retrying > 0 THEN 1 END) AS "retryingInstances",
            count(CASE WHEN last_error_at >= ${since} THEN 1 END) AS errors
          FROM ${withProblem(account, agent, { problem: "any", since })} AS found GROUP BY agent`,
      { account, kind: "search" },
    );
    // PostgreSQL's sums are decimal numbers, which arrive as text.
    return rows.map((row) => ({
      agent: String(row.agent),
      instances: Number(row.instances),
      deadLetters: Number(row.deadLetters),
      deadLetterInstances: Number(row.deadLetterInstances),
      retrying: Number(row.retrying),
      retryingInstances: Number(row.retryingInstances),
      errors: Number(row.errors),
    }));
  }

  /** Names of instances with dead letters, after a name. */
  async withDeadLetters(account: string, agent: string, after: string, limit: number): Promise<string[]> {
    const rows = await this.#database.scan<{ name: string }>(
      sql`SELECT name FROM agent_instance WHERE account_id = ${account} AND agent = ${agent} AND dead_letters > 0
            AND name > ${after} ORDER BY name LIMIT ${limit}`,
      { account, kind: "page" },
    );
    return rows.map(({ name }) => name);
  }

  async countWithDeadLetters(account: string, agent: string, after: string): Promise<number> {
    const [row] = await this.#database.scan<{ n: number }>(
      sql`SELECT count(*) AS n FROM agent_instance
          WHERE account_id = ${account} AND agent = ${agent} AND dead_letters > 0 AND name > ${after}`,
      { account, kind: "search" },
    );
    return row?.n ?? 0;
  }

  /** By the numbers in the names; if there are too many to be sorted here, in the order of the database. */
  async #byName(query: PageQuery): Promise<EntryPage> {
    const { account, agent, cursor, limit } = query;
    const from = rowsOf(this.#database.engine, query);
    const turn = turnOf(query);
    const names = await this.#database.scan<{ name: string }>(
      sql`SELECT name FROM ${from} LIMIT ${MAX_SORTED + 1}`,
      turn,
    );
    if (names.length > MAX_SORTED) {
      const after = cursor === undefined ? sql`` : sql`WHERE name > ${cursor}`;
      const rows = await this.#database.scan<CatalogRow>(
        sql`SELECT * FROM ${from} ${after} ORDER BY name LIMIT ${limit + 1}`,
        turn,
      );
      return toPage(rows.map(fromRow), limit, ({ name }) => name);
    }
    const sorted = byNaturalName(names.map(({ name }) => name));
    const page = sorted.after(cursor, limit + 1);
    if (page.length === 0) return { entries: [], next: null };
    const rows = await this.#database.scan<CatalogRow>(
      sql`SELECT * FROM agent_instance WHERE account_id = ${account} AND agent = ${agent} AND name IN (${sqlList(page)})`,
      turn,
    );
    const entries = new Map(rows.map((row) => [row.name, fromRow(row)]));
    // One that is destroyed in the meantime is left out.
    const found = page.flatMap((name) => entries.get(name) ?? []);
    const shown = found.slice(0, limit);
    return { entries: shown, next: page.length > limit ? (page[limit - 1] ?? null) : null };
  }

  /** Few instances have queue items or dead letters, and an index contains those only: the others follow in the order of their names. */
  async #byColumn(query: PageQuery, order: Exclude<InstanceOrder, "name">): Promise<EntryPage> {
    const { cursor, limit } = query;
    const from = rowsOf(this.#database.engine, query);
    const turn = turnOf(query);
    const column = COLUMNS[order];
    const [value, name] = cursor === undefined ? [Number.MAX_SAFE_INTEGER, ""] : parseCursor(cursor, 2);
    // The first condition makes the index begin at the cursor.
    const after = sql`${column} <= ${Number(value)} AND (${column} < ${Number(value)} OR name > ${String(name)})`;
    const rows: CatalogRow[] = [];
    if (Number(value) > 0)
      rows.push(
        ...(await this.#database.scan<CatalogRow>(
          sql`SELECT * FROM ${from} WHERE ${column} > 0 AND ${after} ORDER BY ${column} DESC, name LIMIT ${limit + 1}`,
          turn,
        )),
      );
    if (rows.length <= limit)
      rows.push(
        ...(await this.#database.scan<CatalogRow>(
          sql`SELECT * FROM ${from} WHERE ${column} = 0 AND name > ${Number(value) > 0 ? "" : String(name)}
              ORDER BY name LIMIT ${limit + 1 - rows.length}`,
          turn,
        )),
      );
    return toPage(rows.map(fromRow), limit, (entry) => toCursor([valueOf(entry, order), entry.name]));
  }
}

/** What instances are ordered by. */
export function valueOf(
  { figures, lastActiveAt }: CatalogEntry,
  order: Exclude<InstanceOrder, "name">,
): number {
  if (order === "last_active") return lastActiveAt;
  return order === "queued" ? figures.queued : figures.deadLetters;
}

/** Which problems an entry has. */
export function problemsOf(entry: CatalogEntry, since: number, isStuck: boolean): InstanceProblem[] {
  const { deadLetters, retrying } = entry.figures;
  const found: InstanceProblem[] = [];
  if (isStuck) found.push("stuck");
  if (deadLetters > 0) found.push("dead_letters");
  if (retrying > 0) found.push("retrying");
  if (entry.lastErrorAt !== null && entry.lastErrorAt >= since) found.push("error");
  return found;
}

/** One part for each problem, so that each reads the index of its problem and not all instances. */
function withProblem(
  account: string,
  agent: string | undefined,
  { problem, since }: ProblemRule,
  stuck: readonly string[] = [],
  isWanted: SqlQuery = sql``,
): SqlQuery {
  const ofAgent = agent === undefined ? sql`` : sql`AND agent = ${agent}`;
  const known = INSTANCE_PROBLEMS.filter((kind) => kind !== "stuck" || stuck.length > 0);
  const kinds = problem === "any" ? known : [problem];
  const parts = kinds.map(
    (kind) =>
      sql`SELECT * FROM agent_instance WHERE account_id = ${account} AND ${problemOf(kind, since, stuck)} ${ofAgent} ${isWanted}`,
  );
  return sql`(${joinSql(parts, " UNION ")})`;
}

/** The rows of a page, of which an order selects some. */
function rowsOf(engine: Database["engine"], { account, agent, search, rule, stuck }: PageQuery): SqlQuery {
  const contains = engine === "sqlite" ? containsInSqlite : containsInPostgres;
  const isWanted = search === undefined ? sql`` : sql`AND ${contains(rawSql("name"), search)}`;
  const rows =
    rule === undefined
      ? sql`(SELECT * FROM agent_instance WHERE account_id = ${account} AND agent = ${agent} ${isWanted})`
      : withProblem(account, agent, rule, stuck, isWanted);
  return sql`${rows} AS listed`;
}

/** No index helps to find a part of a name. */
function turnOf({ account, search }: PageQuery): ScanTurn {
  return { account, kind: search === undefined ? "page" : "search" };
}

function problemOf(problem: InstanceProblem, since: number, stuck: readonly string[]): SqlQuery {
  switch (problem) {
    case "dead_letters":
      return sql`dead_letters > 0`;
    case "retrying":
      return sql`retrying > 0`;
    case "error":
      return sql`last_error_at >= ${since}`;
    case "stuck":
      return stuck.length === 0 ? sql`1 = 0` : sql`name IN (${sqlList(stuck)})`;
  }
}

function toPage(
  entries: readonly CatalogEntry[],
  limit: number,
  cursorOf: (entry: CatalogEntry) => string,
): EntryPage {
  const shown = entries.slice(0, limit);
  const last = shown.at(-1);
  return { entries: shown, next: entries.length > limit && last !== undefined ? cursorOf(last) : null };
}

export function toCursor(values: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(values)).toString("base64url");
}

/** Throws `invalid_request` for a text that `toCursor` has not made. */
export function parseCursor(cursor: string, length: number): readonly (string | number)[] {
  try {
    const values = JSON.parse(Buffer.from(cursor.slice(0, MAX_CURSOR), "base64url").toString()) as unknown;
    const isValid =
      Array.isArray(values) &&
      values.length === length &&
      Number.isSafeInteger(values[0]) &&
      values.slice(1).every((value) => typeof value === "string" && !value.includes("\0"));
    if (isValid) return values as (string | number)[];
  } catch {
    // Refused below.
  }
  throw new SignalboxError("invalid_request", { message: "cursor: not a cursor of this list" });
}
