/**
 * Templates: the bytes of an empty database with its tables, in WAL mode. A new instance starts as a copy of a template, which takes a quarter of the
 * time that creating the tables takes. Templates are built in memory, once per process and schema.
 * See ../README.md.
 */
import { hash } from "node:crypto";
import { SqliteConnection } from "../../sqlite-file/index.ts";
import { ID_BYTES } from "../instance-path.ts";
import type { BaseSchema } from "../instance-store.ts";
import { PAGE_BYTES } from "../page-bytes.ts";
import { NO_ID, type Template } from "./journal-records.ts";

export class Templates {
  readonly #baseSchema: BaseSchema;
  /** By the schema that follows the base schema; there are as many as there are classes with one. */
  readonly #templates = new Map<string, Template>();

  constructor(baseSchema: BaseSchema) {
    this.#baseSchema = baseSchema;
  }

  /** Throws if SQLite rejects the schema. */
  find(schema = ""): Template {
    let template = this.#templates.get(schema);
    if (template === undefined) {
      const bytes = build(this.#baseSchema, schema);
      const id = schema === "" ? NO_ID : hash("sha256", bytes, "buffer").subarray(0, ID_BYTES);
      template = { id, bytes };
      this.#templates.set(schema, template);
    }
    return template;
  }
}

function build(base: BaseSchema, schema: string): Uint8Array {
  const connection = SqliteConnection.open(":memory:");
  try {
    connection.exec(
      `PRAGMA page_size = ${PAGE_BYTES}; ${base.create}; PRAGMA user_version = ${base.version}; ${schema}`,
    );
    const bytes = new Uint8Array(connection.serialize());
    // Bytes 18 and 19 of the header are the file format versions; 2 means WAL (SQLite file format, section 1.3.3).
    bytes[18] = 2;
    bytes[19] = 2;
    return bytes;
  } finally {
    connection.close();
  }
}
