/** A day file's statements that add calls and their bodies, compiled once and told their values by place: they run for every call. */
import { constants, zstdCompressSync } from "node:zlib";
import type { CallRecord } from "./call-log.ts";
import type { SqlValue } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";

/** Setting up a compression takes 30 to 80 µs and memory that is collected late; for a smaller body that buys too little disk. */
const MIN_COMPRESSED_BYTES = 2048;

/** A fifth faster than the default level on a stream's 10 KB, for a few per cent more disk. */
const COMPRESSION_LEVEL = 1;
const MAX_CHUNK_BYTES = 64 * 1024;

const CALL_COLUMNS = [
  "seq, gateway, id, created_at, provider, model, path, method, request_type, request_content_type",
  "response_content_type, status_code, success, duration_ms, first_byte_ms, cached, step, tokens_in, tokens_out",
  "tokens_in_cached, tokens_in_cache_write, tokens_out_reasoning, cost, is_custom_cost, metadata, event_id",
  "user_agent, token_id, request_bytes, response_bytes, has_request_body, has_response_body",
  "request_body_complete, response_body_complete",
].join(", ");
const INSERT_CALL = `INSERT INTO call (${CALL_COLUMNS}) VALUES (${CALL_COLUMNS.replaceAll(/\w+/g, "?")})
  ON CONFLICT (gateway, id) DO NOTHING`;
const INSERT_BODY = "INSERT INTO body (place, is_zstd, bytes) VALUES (?, ?, ?)";

export class CallInserts {
  /** Both return how many rows they added. */
  readonly #insertCall: (...values: SqlValue[]) => number;
  readonly #insertBody: (place: number, isZstd: number, bytes: Uint8Array) => number;
  readonly #maxBodyBytes: number;

  constructor(connection: SqliteConnection, maxBodyBytes: number) {
    this.#insertCall = connection.prepareRun(INSERT_CALL);
    this.#insertBody = connection.prepareRun(INSERT_BODY);
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** False when the row was there already. */
  insert(seq: number, gateway: number, call: CallRecord): boolean {
    const { usage } = call;
    const changes = this.#insertCall(
      seq,
      gateway,
      call.id,
      call.createdAt,
      call.provider,
      call.model,
      call.path,
      call.method,
      call.requestType,
      call.requestContentType,
      call.responseContentType,
      call.statusCode,
      call.success ? 1 : 0,
      call.durationMs,
      call.firstByteMs,
      call.cached ? 1 : 0,
      call.step,
      usage.tokensIn,
      usage.tokensOut,
      usage.tokensInCached,
      usage.tokensInCacheWrite,
      usage.tokensOutReasoning,
      call.cost,
      call.isCustomCost ? 1 : 0,
      call.metadata,
      call.eventId,
      call.userAgent,
      call.tokenId,
      call.requestBytes,
      call.responseBytes,
      call.requestBody === null ? 0 : 1,
      call.responseBody === null ? 0 : 1,
      this.#isWhole(call.requestBody, call.requestBodyComplete),
      this.#isWhole(call.responseBody, call.responseBodyComplete),
    );
    if (changes === 0) return false;
    this.#addBody(seq * 2, call.requestBody);
    this.#addBody(seq * 2 + 1, call.responseBody);
    return true;
  }

  #addBody(place: number, body: Uint8Array | null): void {
    if (body === null) return;
    const kept = body.length > this.#maxBodyBytes ? body.subarray(0, this.#maxBodyBytes) : body;
    if (kept.length >= MIN_COMPRESSED_BYTES) this.#insertBody(place, 1, compress(kept));
    else this.#insertBody(place, 0, kept);
  }

  #isWhole(body: Uint8Array | null, isComplete: boolean): number {
    return isComplete && (body === null || body.length <= this.#maxBodyBytes) ? 1 : 0;
  }
}

function compress(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, {
    pledgedSrcSize: bytes.length,
    chunkSize: Math.min(bytes.length, MAX_CHUNK_BYTES),
    params: { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL },
  });
}
