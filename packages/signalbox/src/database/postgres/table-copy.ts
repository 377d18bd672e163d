/** Copies tables of PostgreSQL to files and back, with `COPY` in its text format, which every version of the server reads. */
import { closeSync, openSync } from "node:fs";
import type { Client, Connection, Submittable } from "pg";
import { writeWhole } from "../../engines/durable-file/index.ts";

/** The part of the driver's connection that is missing from its types. */
interface CopyConnection extends Connection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}

/** Rows are collected up to this size and written with one call. */
const WRITE_BYTES = 256 * 1024;

abstract class Copy implements Submittable {
  /** The driver adds a time limit to the callback of a query. */
  callback: (error: Error | null | undefined) => void = () => undefined;
  readonly #text: string;
  protected error: Error | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  submit(connection: Connection): void {
    (connection as CopyConnection).query(this.#text);
  }

  handleError(error: Error): void {
    this.error ??= error;
    this.callback(this.error);
  }

  handleReadyForQuery(): void {
    this.callback(this.error);
  }

  handleCopyInResponse(_connection: CopyConnection): void {
    // Only COPY FROM waits for data.
  }

  handleCopyData(_message: { readonly chunk: Buffer }): void {
    // Only COPY TO sends data.
  }

  handleCommandComplete(): void {
    // `handleReadyForQuery` follows.
  }

  handleRowDescription(): void {
    // COPY returns no rows.
  }

  handleDataRow(): void {
    // COPY returns no rows.
  }
}

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

function run(client: Client, copy: Copy): Promise<void> {
  return new Promise((resolve, reject) => {
    copy.callback = (error) => {
      if (error == null) resolve();
      else reject(error);
    };
    client.query(copy);
  });
}

/** Writes the rows of a query to a new file; returns their number. */
export async function copyToFile(client: Client, query: string, path: string): Promise<number> {
  const file = openSync(path, "wx", 0o600);
  try {
    const copy = new CopyOut(`COPY (${query}) TO STDOUT`, file);
    await run(client, copy);
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
  await run(client, new CopyIn(`COPY ${target} FROM STDIN`, chunks));
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
