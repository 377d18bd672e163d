/** The statements that add a call and its bodies to a day file, compiled once per file. They run for every call. */
import { constants, zstdCompressSync } from "node:zlib";
import type { SqlValue } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { PackedRow } from "./packed-row.ts";
import { RECORD_COLUMNS } from "./row-batch.ts";

/** Setting up a compression takes 30 to 80 µs and memory that is collected late; for a smaller body the disk space is not worth that. */
const MIN_COMPRESSED_BYTES = 2048;
/** A fifth faster than the default level on the 10 KB of a stream, for a few per cent more disk. */
const COMPRESSION_LEVEL = 1;
const MAX_CHUNK_BYTES = 64 * 1024;

const COLUMNS = ["seq", "gateway", "has_request_body", "has_response_body"];
const NAMES = [...COLUMNS, ...RECORD_COLUMNS.map(({ sqlName }) => sqlName)];
const INSERT_CALL = `INSERT INTO call (${NAMES.join(", ")}) VALUES (${NAMES.map(() => "?").join(", ")})
  ON CONFLICT (gateway, id) DO NOTHING`;
const INSERT_BODY = "INSERT INTO body (place, is_zstd, bytes) VALUES (?, ?, ?)";
const REQUEST_BODY_COMPLETE = NAMES.indexOf("request_body_complete") - COLUMNS.length;
const RESPONSE_BODY_COMPLETE = NAMES.indexOf("response_body_complete") - COLUMNS.length;

export class CallInserts {
  /** Both return the number of rows added. */
  readonly #insertCall: (...values: SqlValue[]) => number;
  readonly #insertBody: (place: number, isZstd: number, bytes: Uint8Array) => number;
  readonly #maxBodyBytes: number;

  constructor(connection: SqliteConnection, maxBodyBytes: number) {
    this.#insertCall = connection.prepareRun(INSERT_CALL);
    this.#insertBody = connection.prepareRun(INSERT_BODY);
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** False if the file has the row already. */
  insert(seq: number, gateway: number, row: PackedRow): boolean {
    const { values, requestBody, responseBody } = row;
    if (this.#isTooLong(requestBody)) values[REQUEST_BODY_COMPLETE] = 0;
    if (this.#isTooLong(responseBody)) values[RESPONSE_BODY_COMPLETE] = 0;
    const hasRequest = requestBody === null ? 0 : 1;
    const hasResponse = responseBody === null ? 0 : 1;
    if (this.#insertCall(seq, gateway, hasRequest, hasResponse, ...values) === 0) return false;
    if (requestBody !== null) this.#addBody(seq * 2, requestBody);
    if (responseBody !== null) this.#addBody(seq * 2 + 1, responseBody);
    return true;
  }

  #addBody(place: number, body: Uint8Array): void {
    const kept = this.#isTooLong(body) ? body.subarray(0, this.#maxBodyBytes) : body;
    if (kept.length >= MIN_COMPRESSED_BYTES) this.#insertBody(place, 1, compress(kept));
    else this.#insertBody(place, 0, kept);
  }

  #isTooLong(body: Uint8Array | null): boolean {
    return body !== null && body.length > this.#maxBodyBytes;
  }
}

function compress(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, {
    pledgedSrcSize: bytes.length,
    chunkSize: Math.min(bytes.length, MAX_CHUNK_BYTES),
    params: { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL },
  });
}
