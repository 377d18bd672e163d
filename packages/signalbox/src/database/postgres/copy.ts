/**
 * `COPY` with the driver `pg`: a query of its own kind, which the driver supports by calling the methods below. What is sent or received is up to the
 * classes that extend this one.
 */
import type { Client, Connection, Submittable } from "pg";

/** The part of the driver's connection that is missing from its types. */
export interface CopyConnection extends Connection {
  query(text: string): void;
  sendCopyFromChunk(chunk: Buffer): void;
  endCopyFrom(): void;
  sendCopyFail(reason: string): void;
}

export abstract class Copy implements Submittable {
  /** The driver adds a time limit to the callback of a query. */
  callback: (error: Error | null | undefined) => void = () => undefined;
  readonly text: string;
  protected error: Error | null = null;

  constructor(text: string) {
    this.text = text;
  }

  submit(connection: Connection): void {
    (connection as CopyConnection).query(this.text);
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

export function runCopy(client: Pick<Client, "query">, copy: Copy): Promise<void> {
  return new Promise((resolve, reject) => {
    copy.callback = (error) => {
      if (error == null) resolve();
      else reject(error);
    };
    client.query(copy);
  });
}
