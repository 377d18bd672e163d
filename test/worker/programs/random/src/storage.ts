/** An object that runs lists of storage operations and tells what each of them did. */
import { DurableObject } from "cloudflare:workers";
import { outcome } from "../../differential/src/show";
import { VALUES } from "./values";

/** Statements in an order in which each can follow any other; the number of values that each takes. */
export const STATEMENTS: readonly (readonly [text: string, values: number])[] = [
  ["create table if not exists t (id integer primary key, a, b text default 'd')", 0],
  ["insert into t (a) values (?)", 1],
  ["insert into t (a, b) values (?, ?) returning *", 2],
  ["select * from t order by id", 0],
  ["select count(*) as n, max(b) as m from t", 0],
  ["update t set b = b || 'q' where id % 2 = 0", 0],
  ["delete from t where id = 2", 0],
  ["select * from t where a = ?", 1],
  ["create unique index if not exists i on t (b)", 0],
  ["drop index if exists i", 0],
  ["insert into t (id, a) values (1, 2)", 0],
  ["insert or ignore into t (id, a) values (1, 2)", 0],
  ["select typeof(?) as t, ? as v", 2],
  ["select 1; select 2 as b", 0],
  ["insert into t (a) values (1); insert into t (a) values (?)", 1],
  ["select * from nothere", 0],
  ["select ?", 2],
  ["-- only a comment", 0],
  ["select 1 as a, 2 as a", 0],
  ["create table if not exists c (id integer primary key, t references t (id))", 0],
  ["insert into c (t) values (99)", 0],
  ["insert into c (t) select max(id) from t", 0],
  ["create virtual table if not exists f using fts5 (x)", 0],
  ["insert into f values ('hello world')", 0],
  ["select * from f where f match 'hello'", 0],
  ["pragma table_info (t)", 0],
  ["create view if not exists v as select a from t", 0],
  ["select * from v limit 2", 0],
  [
    "create trigger if not exists g after insert on t begin update t set b = 'trig' where id = new.id; end",
    0,
  ],
  ["drop trigger if exists g", 0],
  ["with recursive r (x) as (select 1 union all select x + 1 from r where x < 5) select x from r", 0],
  ["select 9007199254740993 as big, 1e300 as e, x'0102' as blob", 0],
  ["replace into t (id, a) values (2, 3)", 0],
  ["insert into t (id, a) values (3, 1) on conflict (id) do update set a = 99 returning a", 0],
  ["select name from sqlite_master where name not like '\\_cf\\_%' escape '\\' order by name", 0],
  ["drop table if exists c", 0],
  ["selec 1", 0],
  ["select changes() as changed", 0],
  ["insert into t (a) values (changes())", 0],
  ["update t set b = 'e' where id < 3; select changes() as changed", 0],
  ["analyze", 0],
  ["pragma quick_check", 0],
];

type Operation = readonly [name: string, ...args: unknown[]];

export class Storage extends DurableObject {
  async run(operations: readonly Operation[], isBurst: boolean) {
    if (isBurst)
      return Promise.all(operations.map((operation) => this.#outcome(operation, this.ctx.storage)));
    const results: unknown[] = [];
    for (const operation of operations) results.push(await this.#outcome(operation, this.ctx.storage));
    return results;
  }

  reset() {
    this.ctx.abort("reset");
  }

  alarm() {}

  #outcome(operation: Operation, storage) {
    return outcome(() => this.#apply(operation, storage));
  }

  async #apply([name, ...args]: Operation, storage) {
    switch (name) {
      case "put":
        return storage.put(args[0], VALUES[args[1] as number]?.());
      case "put many":
        return storage.put(
          Object.fromEntries((args[0] as [string, number][]).map(([key, value]) => [key, VALUES[value]?.()])),
        );
      case "alarm":
        return (await storage.getAlarm()) !== null;
      case "set alarm":
        return storage.setAlarm(Date.now() + 1e9);
      case "transaction":
        return storage.transaction(async (inner) => {
          const results: unknown[] = [];
          for (const operation of args[0] as Operation[]) results.push(await this.#outcome(operation, inner));
          if (args[1] === "throw") throw new Error("thrown");
          if (args[1] === "rollback") inner.rollback();
          return results;
        });
      case "sync transaction":
        return this.ctx.storage.transactionSync(() => {
          for (const operation of args[0] as Operation[]) {
            try {
              this.#sync(operation);
            } catch {
              // What it did is read later.
            }
          }
          if (args[1] === "throw") throw new Error("thrown");
        });
      case "sql":
      case "kv put":
      case "kv get":
      case "kv delete":
      case "kv list":
        return this.#sync([name, ...args]);
      default:
        return storage[name](...args);
    }
  }

  #sync([name, ...args]: Operation) {
    const { kv, sql } = this.ctx.storage;
    switch (name) {
      case "sql": {
        const [number, ...values] = args as number[];
        const [text] = STATEMENTS[number ?? 0] ?? [""];
        const cursor = sql.exec(text, ...values.map((value) => VALUES[value]?.()));
        return { columns: cursor.columnNames, rows: cursor.raw().toArray() };
      }
      case "kv put":
        return kv.put(args[0], VALUES[args[1] as number]?.());
      case "kv list":
        return [...kv.list(args[0])];
      default:
        return kv[name.slice("kv ".length)](args[0]);
    }
  }
}
