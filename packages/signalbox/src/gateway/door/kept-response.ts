/** What clients of the responses API do with an answer that this process keeps: read it, its input, delete it, cancel it. */
import { SignalboxError } from "@signalbox/protocol";
import { type Fields, isFields } from "../../core/fields.ts";
import type { CallersAnswers } from "../exchange/kept-answers.ts";
import { malformed } from "../step/malformed.ts";

/** A request for `responses/{id}` or for what is below it. */
export interface KeptRequest {
  readonly method: string;
  readonly id: string;
  /** `cancel`, `input_items`, or empty for the answer itself. */
  readonly action: string;
  readonly query: URLSearchParams;
}

const DEFAULT_ITEMS = 20;
const MAX_ITEMS = 100;

/** The body of the response to a request for `answer`. `cancel` ends an answer that is being written, and is false for others. */
export function answerKept(
  answers: CallersAnswers,
  answer: Fields,
  { method, id, action, query }: KeptRequest,
  cancel: (id: string) => boolean,
): object {
  if (action === "input_items") {
    requireKind(method, "GET", "HEAD");
    return pageOf(answers.itemsBefore(id), query);
  }
  if (action === "cancel") {
    requireKind(method, "POST");
    if (!cancel(id))
      throw malformed("Only a response that is being written in the background can be cancelled");
    return answers.find(id) ?? answer;
  }
  requireKind(method, "GET", "HEAD", "DELETE");
  if (method === "DELETE") {
    cancel(id);
    answers.forget(id);
    return { id, object: "response", deleted: true };
  }
  if (query.get("stream") === "true") throw malformed("stream: the events of this response are not kept");
  return answer;
}

function requireKind(method: string, ...allowed: readonly string[]): void {
  if (!allowed.includes(method)) {
    throw new SignalboxError("method_not_allowed", { headers: { allow: allowed.join(", ") } });
  }
}

/** The latest item first, unless `order` is `asc`. */
function pageOf(items: readonly unknown[], query: URLSearchParams): object {
  const limit = Number(query.get("limit") ?? DEFAULT_ITEMS);
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_ITEMS) {
    throw malformed(`limit must be a whole number from 1 to ${MAX_ITEMS}`);
  }
  const named = items.map((item, i) => toItem(item, i));
  const ordered = query.get("order") === "asc" ? named : named.toReversed();
  const after = query.get("after");
  const start = after === null ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  const data = ordered.slice(start, start + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + data.length < ordered.length,
  };
}

/** Items of the client may have no id and no type. */
function toItem(item: unknown, i: number): Fields & { readonly id: string } {
  const fields = isFields(item) ? item : {};
  const { id, type, content } = fields;
  const parts = typeof content === "string" ? { content: [{ type: "input_text", text: content }] } : {};
  return {
    ...fields,
    ...parts,
    type: typeof type === "string" ? type : "message",
    id: typeof id === "string" ? id : `item_${i}`,
  };
}
