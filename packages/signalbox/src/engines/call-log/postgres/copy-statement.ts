/**
 * `COPY … FROM STDIN` with the driver `pg`: a query of its own kind, which the driver supports by calling the methods below.
 *
 * The chunks are sent when the server is ready for them, one by one: the server stores a chunk while the next one is encoded. The chunks of one
 * statement are bounded by the size of a batch, so they are not throttled.
 */
import type { Client, Connection, Submittable } from "pg";

/** The part of the driver's connection that is missing from its types. */
interface CopyConnection extends Connection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}

class CopyStatement implements Submittable {
  /** The driver adds a time limit to the callback of a query. */
  callback: (error: Error | null | undefined) => void = () => undefined;
  readonly #text: string;
  readonly #chunks: () => Iterable<Buffer>;
  #error: Error | null = null;
  #failure: Error | null = null;

  constructor(text: string, chunks: () => Iterable<Buffer>) {
    this.#text = text;
    this.#chunks = chunks;
  }

  submit(connection: Connection): void {
    (connection as CopyConnection).query(this.#text);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    try {
      for (const chunk of this.#chunks()) connection.sendCopyFromChunk(chunk);
      connection.endCopyFrom();
    } catch (error) {
      // The server reports the failure of the statement; the cause is ours.
      this.#failure = error as Error;
      connection.sendCopyFail("the rows could not be encoded");
    }
  }

  handleError(error: Error): void {
    this.#error ??= this.#failure ?? error;
    // A lost connection or a time limit: no further message follows. After an error of the server, `handleReadyForQuery` does nothing more.
    this.callback(this.#error);
  }

  handleReadyForQuery(): void {
    this.callback(this.#error);
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

  handleCopyData(): void {
    // Only COPY TO sends data.
  }
}

/** Resolves when the server has received all chunks; rejects with the error of the server, of the connection or of `chunks`. */
export function copyFrom(client: Client, text: string, chunks: () => Iterable<Buffer>): Promise<void> {
  return new Promise((resolve, reject) => {
    const statement = new CopyStatement(text, chunks);
    statement.callback = (error) => {
      if (error == null) resolve();
      else reject(error);
    };
    client.query(statement);
  });
}
