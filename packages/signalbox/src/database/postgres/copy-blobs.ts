/**
 * Reads large blobs with `COPY` in its binary format. The driver has every value of a row sent as text: a blob as hexadecimal digits, which the server
 * writes, the driver makes a string of, and then reads.
 *
 * `COPY` has no parameters, so the values become literals of the text, here and nowhere else.
 */
import { type Client, escapeLiteral } from "pg";
import type { SqlQuery, SqlValue } from "../../core/sql.ts";
import type { LabelledBlob } from "../database.ts";
import { Copy, runCopy } from "./copy.ts";

/** A signature, flags, and the length of an extension, which is empty. */
const HEADER_BYTES = 19;
const FIELDS = 2;
/** In place of the number of fields: no more rows. */
const END = -1;

/** Blobs share buffers of this size: each buffer of its own is one more for the garbage collector. */
const SLAB_BYTES = 1024 * 1024;

/** The rows of a query with the columns `label` and `bytes`. */
export async function copyBlobs(client: Pick<Client, "query">, query: SqlQuery): Promise<LabelledBlob[]> {
  const copy = new CopyBlobs(`COPY (${withLiterals(query)}) TO STDOUT (FORMAT binary)`);
  await runCopy(client, copy);
  return copy.blobs;
}

class CopyBlobs extends Copy {
  readonly blobs: LabelledBlob[] = [];
  #isFirst = true;
  #slab = new Uint8Array(0);
  /** Where the slab is free. */
  #at = 0;

  /** The server sends each row in a message of its own, the first one after the header. */
  override handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    const start = this.#isFirst ? HEADER_BYTES : 0;
    this.#isFirst = false;
    if (start >= chunk.length || chunk.readInt16BE(start) === END || this.error !== null) return;
    const row = parseRow(chunk.subarray(start));
    if (row === null) this.error = new Error("a row of blobs is a label and bytes, which are not NULL");
    else this.blobs.push({ label: row.label, bytes: this.#copyOf(row.bytes) });
  }

  /** The driver uses its buffer again. */
  #copyOf(bytes: Buffer): Uint8Array {
    if (bytes.length > SLAB_BYTES / 8) return new Uint8Array(bytes);
    if (this.#at + bytes.length > this.#slab.length) {
      this.#slab = new Uint8Array(SLAB_BYTES);
      this.#at = 0;
    }
    const start = this.#at;
    this.#at += bytes.length;
    this.#slab.set(bytes, start);
    return this.#slab.subarray(start, this.#at);
  }
}

/** Null if it is another row. An exception here would be one of the connection's stream. */
function parseRow(row: Buffer): { readonly label: string; readonly bytes: Buffer } | null {
  if (row.readInt16BE(0) !== FIELDS) return null;
  const labelBytes = row.readInt32BE(2);
  const at = 6 + labelBytes;
  if (labelBytes < 0 || row.readInt32BE(at) !== row.length - at - 4) return null;
  return { label: row.toString("utf8", 6, at), bytes: row.subarray(at + 4) };
}

function withLiterals({ parts, values }: SqlQuery): string {
  return parts.reduce((text, part, i) => (i === 0 ? part : text + literal(values[i - 1] ?? null) + part), "");
}

function literal(value: SqlValue): string {
  switch (typeof value) {
    case "string":
      // It would end the text of the statement.
      if (value.includes("\0")) throw new Error("a text with NUL is no text of PostgreSQL");
      return escapeLiteral(value);
    case "bigint":
      return `(${value})`;
    case "number":
      // With parentheses: two signs in a row begin a comment.
      if (Number.isFinite(value)) return `(${value})`;
      throw new Error(`${value} is no number of SQL`);
    default:
      return value === null ? "NULL" : `'\\x${Buffer.from(value).toString("hex")}'::bytea`;
  }
}
