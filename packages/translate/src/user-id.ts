/** Who the end user is, as OpenAI's formats say it. */
import type { NeutralRequest } from "./neutral/request.ts";
import type { EncodeEnvironment } from "./request-codec.ts";
import { sourceField } from "./source-fields.ts";

/** A call with a longer name is refused. Claude Code sends longer ones. */
const MAX_LENGTH = 64;

/** A name that is too long is left out and listed: the answer is the same without it, and a part of it could name somebody else. */
export function encodeUser(
  body: Record<string, unknown>,
  { user }: Pick<NeutralRequest, "user">,
  { from, losses }: EncodeEnvironment,
): void {
  if (user === null) return;
  if (user.length > MAX_LENGTH) losses.note(sourceField(from, "user"));
  else body[from === "messages" ? "safety_identifier" : "user"] = user;
}
