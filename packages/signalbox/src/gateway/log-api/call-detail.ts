/** One stored call with the beginning of its bodies. */
import { z } from "zod";
import type { CallRow, StoredBody } from "../../engines/call-log/index.ts";
import { callResult, showCall } from "./call-fields.ts";

/** Bytes of a body that the detail shows; the whole body has a path of its own. */
export const HEAD_BYTES = 4096;

export const callDetail = callResult.extend({
  request_head: z.string().optional(),
  request_head_complete: z.boolean().optional(),
  response_head: z.string().optional(),
  response_head_complete: z.boolean().optional(),
  /** Present if the body was stored and the size limit of the log has removed it. */
  request_body_removed: z.literal(true).optional(),
  response_body_removed: z.literal(true).optional(),
});

export function showCallDetail(
  row: CallRow,
  request: StoredBody | null,
  response: StoredBody | null,
): Record<string, unknown> {
  return {
    ...showCall(row),
    ...(request === null
      ? {}
      : { request_head: headText(request), request_head_complete: isWholeHead(request, row.requestBytes) }),
    ...(response === null
      ? {}
      : {
          response_head: headText(response),
          response_head_complete: isWholeHead(response, row.responseBytes),
        }),
    ...(row.hasRequestBody && request === null ? { request_body_removed: true } : {}),
    ...(row.hasResponseBody && response === null ? { response_body_removed: true } : {}),
  };
}

function headText(body: StoredBody): string {
  // The streaming mode omits an incomplete character at the end instead of replacing it.
  return new TextDecoder().decode(body.bytes, { stream: true });
}

function isWholeHead(body: StoredBody, size: number): boolean {
  return body.isComplete && size <= body.bytes.length;
}
