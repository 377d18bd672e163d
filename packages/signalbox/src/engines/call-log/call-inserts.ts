/** The statements that add a call and its bodies to a day file, compiled once per file. They run for every call. */
import type { SqlValue } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { PackedRow } from "./packed-row.ts";
import { RECORD_COLUMNS } from "./row-batch.ts";
import { toStoredBody } from "./stored-body.ts";

const COLUMNS = ["seq", "gateway", "counted", "has_request_body", "has_response_body"];
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
  readonly #counted: 0 | 1;

  /** `isCounted`: the calls become part of the totals. */
  constructor(connection: SqliteConnection, maxBodyBytes: number, isCounted: boolean) {
    this.#counted = isCounted ? 1 : 0;
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
    if (this.#insertCall(seq, gateway, this.#counted, hasRequest, hasResponse, ...values) === 0) return false;
    if (requestBody !== null) this.#addBody(seq * 2, requestBody);
    if (responseBody !== null) this.#addBody(seq * 2 + 1, responseBody);
    return true;
  }

  #addBody(place: number, body: Uint8Array): void {
    const { bytes, isZstd } = toStoredBody(body, this.#maxBodyBytes);
    this.#insertBody(place, isZstd ? 1 : 0, bytes);
  }

  #isTooLong(body: Uint8Array | null): boolean {
    return body !== null && body.length > this.#maxBodyBytes;
  }
}
