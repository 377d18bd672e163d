/** Deliveries with names, which can be sent again as examples. They are copies, and outlive what they were copied from. */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";

const MAX_EXAMPLES = 100;

export interface Example {
  readonly accountId: string;
  readonly name: string;
  readonly source: string;
  readonly type: string;
  readonly entity: string | null;
  readonly target: string;
  readonly contentType: string | null;
  /** Without signatures. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly createdAt: number;
}

interface Row {
  readonly account_id: string;
  readonly name: string;
  readonly source: string;
  readonly type: string;
  readonly entity: string | null;
  readonly target: string;
  readonly content_type: string | null;
  readonly headers: string;
  readonly body: Uint8Array;
  readonly created_at: number;
}

const SCOPE = { scope: "webhook_example" };

export class Examples {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  async list(accountId: string): Promise<Example[]> {
    const rows = await this.#database.all<Row>(
      sql`SELECT * FROM webhook_example WHERE account_id = ${accountId} ORDER BY name`,
    );
    return rows.map(fromRow);
  }

  async find(accountId: string, name: string): Promise<Example> {
    const row = await this.#database.get<Row>(
      sql`SELECT * FROM webhook_example WHERE account_id = ${accountId} AND name = ${name}`,
    );
    if (row === undefined) throw new SignalboxError("not_found", { message: "Example not found" });
    return fromRow(row);
  }

  async put(example: Omit<Example, "createdAt">): Promise<Example> {
    const { accountId, name, source, type, entity, target, contentType, headers, body } = example;
    await this.#database.transaction(async (tx) => {
      const others = await tx.get<{ count: number }>(
        sql`SELECT count(*) AS count FROM webhook_example WHERE account_id = ${accountId} AND name <> ${name}`,
      );
      if ((others?.count ?? 0) >= MAX_EXAMPLES)
        throw new SignalboxError("invalid_request", {
          message: `An account has at most ${MAX_EXAMPLES} examples`,
        });
      await tx.run(sql`DELETE FROM webhook_example WHERE account_id = ${accountId} AND name = ${name}`);
      await tx.run(
        sql`INSERT INTO webhook_example (account_id, name, source, type, entity, target, content_type, headers, body, created_at)
            VALUES (${accountId}, ${name}, ${source}, ${type}, ${entity}, ${target}, ${contentType}, ${JSON.stringify(headers)},
                    ${body}, ${this.#clock.now()})`,
      );
    }, SCOPE);
    return this.find(accountId, name);
  }

  async delete(accountId: string, name: string): Promise<Example> {
    const example = await this.find(accountId, name);
    await this.#database.transaction(
      (tx) => tx.run(sql`DELETE FROM webhook_example WHERE account_id = ${accountId} AND name = ${name}`),
      SCOPE,
    );
    return example;
  }
}

function fromRow(row: Row): Example {
  return {
    accountId: row.account_id,
    name: row.name,
    source: row.source,
    type: row.type,
    entity: row.entity,
    target: row.target,
    contentType: row.content_type,
    headers: JSON.parse(row.headers) as Record<string, string>,
    body: row.body,
    createdAt: row.created_at,
  };
}
