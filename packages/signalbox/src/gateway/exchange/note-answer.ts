/** Reads the id of an answer of OpenAI's responses API from the bytes that pass: it stands at the beginning, of a stream in the first event. */
import type { UpstreamHandler } from "../../engines/relay/index.ts";

const ID = /"id"\s*:\s*"(resp_[\w-]{1,128})"/;
/** More than what stands before the id. */
const MAX_BYTES = 4096;

/** Passes everything on to `handler`, and calls `note` with the id, if there is one. */
export function notingAnswer(handler: UpstreamHandler, note: (id: string) => void): UpstreamHandler {
  let start = "";
  let isRead = false;
  return {
    onHead(head) {
      isRead = head.status >= 400;
      handler.onHead(head);
    },
    onBody(chunk, isLast) {
      if (!isRead) {
        start += chunk.toString("latin1", 0, MAX_BYTES);
        const id = ID.exec(start)?.[1];
        if (id !== undefined) note(id);
        isRead = id !== undefined || start.length >= MAX_BYTES;
        if (isRead) start = "";
      }
      handler.onBody(chunk, isLast);
    },
    onReadEnd: () => handler.onReadEnd(),
    onFailure: (failure) => handler.onFailure(failure),
  };
}
