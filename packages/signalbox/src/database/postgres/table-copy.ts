/** Copies tables of PostgreSQL to files and back, with `COPY` in its text format, which every version of the server reads. */
import { closeSync, openSync } from "node:fs";
import type { Client, Connection } from "pg";
import { writeWhole } from "../../engines/durable-file/index.ts";
import { Copy, type CopyConnection, runCopy } from "./copy.ts";

/** Rows are collected up to this size and written with one call. */
const WRITE_BYTES = 256 * 1024;

class CopyOut extends Copy {
  readonly #file: number;
  readonly #rows: Buffer[] = [];
  #bytes = 0;
  count = 0;

  constructor(text: string, file: number) {
    super(text);
    this.#file = file;
  }

  override handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    // The driver uses its buffer again.
    this.#rows.push(Buffer.from(chunk));
    this.count += 1;
    this.#bytes += chunk.length;
    if (this.#bytes >= WRITE_BYTES) this.#write();
  }

  override handleReadyForQuery(): void {
    this.#write();
    super.handleReadyForQuery();
  }

  /** Synchronous, so that no more than this is in memory. An error of the disk is reported when the server has sent the rest. */
  #write(): void {
    const bytes = Buffer.concat(this.#rows.splice(0));
    this.#bytes = 0;
    if (this.error !== null) return;
    try {
      writeWhole(this.#file, bytes);
    } catch (error) {
      this.error = error as Error;
    }
  }
}

class CopyIn extends Copy {
  readonly #chunks: AsyncIterable<Buffer>;

  constructor(text: string, chunks: AsyncIterable<Buffer>) {
    super(text);
    this.#chunks = chunks;
  }

  override handleCopyInResponse(connection: CopyConnection): void {
    this.#send(connection).catch((error: unknown) => {
      // The server reports the failure of the statement; the cause is ours.
      this.error = error as Error;
      connection.sendCopyFail("the rows could not be read");
    });
  }

  async #send(connection: CopyConnection): Promise<void> {
    for await (const chunk of this.#chunks) {
      if (this.error !== null) return;
      connection.sendCopyFromChunk(chunk);
      if (connection.stream.writableNeedDrain) await drained(connection.stream);
    }
    connection.endCopyFrom();
  }
}

/** Also resolves when the connection is lost, which the statement reports. Leaves no listener: a large table waits many times. */
function drained(stream: Connection["stream"]): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}

/** Writes the rows of a query to a new file; returns their number. */
export async function copyToFile(client: Client, query: string, path: string): Promise<number> {
  const file = openSync(path, "wx", 0o600);
  try {
    const copy = new CopyOut(`COPY (${query}) TO STDOUT`, file);
    await runCopy(client, copy);
    return copy.count;
  } finally {
    closeSync(file);
  }
}

/** Adds rows as `copyToFile` has written them. */
export async function copyFromChunks(
  client: Client,
  target: string,
  chunks: AsyncIterable<Buffer>,
): Promise<void> {
  await runCopy(client, new CopyIn(`COPY ${target} FROM STDIN`, chunks));
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
