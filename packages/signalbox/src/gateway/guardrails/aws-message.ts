/**
 * The document of one message of Amazon's binary event stream: its payload or, of a model that is called as it is (`invoke-with-response-stream`),
 * what the payload has in base64. It is found as every reader finds it, in whichever form the payload is written: one that is overlooked would be
 * searched as a file, by itself.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import { editAwsMessage } from "../../engines/relay/index.ts";

export function readAwsDocument(message: Buffer): string {
  let payload = "";
  editAwsMessage(message, (found) => {
    payload = found.toString("utf8");
    return null;
  });
  const bytes = wrapperIn(payload)?.["bytes"];
  return typeof bytes === "string" ? Buffer.from(bytes, "base64").toString("utf8") : payload;
}

/** The message with another document. */
export function writeAwsDocument(message: Buffer, json: string): Buffer {
  return editAwsMessage(message, (payload) => {
    const wrapper = wrapperIn(payload.toString("utf8"));
    return wrapper === null
      ? json
      : JSON.stringify({ ...wrapper, bytes: Buffer.from(json).toString("base64") });
  });
}

/** Null for a payload that is the document itself. */
function wrapperIn(payload: string): Fields | null {
  try {
    const value: unknown = JSON.parse(payload);
    return isFields(value) && typeof value["bytes"] === "string" ? value : null;
  } catch {
    return null;
  }
}
