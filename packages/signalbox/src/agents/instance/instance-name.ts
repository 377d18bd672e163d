/** Which names instances may have. Files are named by a hash, so names never reach a path; the limits are for rows, logs and listings. */
import { SignalboxError } from "@signalbox/protocol";

/** Unicode code points. */
const MAX_CHARACTERS = 256;
// oxlint-disable-next-line no-control-regex -- the expression matches control characters on purpose
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Throws `agent_invalid_name` for a name that is empty, longer than 256 characters, not valid Unicode, or has a control character. */
export function checkInstanceName(name: string): string {
  if (name === "") throw invalid("the name is empty");
  if (name.length > 2 * MAX_CHARACTERS || Array.from(name).length > MAX_CHARACTERS) {
    throw invalid(`the name is longer than ${MAX_CHARACTERS} characters`);
  }
  if (CONTROL.test(name)) throw invalid("the name holds a control character");
  if (!name.isWellFormed()) throw invalid("the name is not valid Unicode");
  return name;
}

function invalid(reason: string): SignalboxError {
  return new SignalboxError("agent_invalid_name", { message: `Invalid instance name: ${reason}` });
}
