/** Converts queries to statements of the PostgreSQL driver. */
import { createHash } from "node:crypto";
import type { SqlQuery, SqlValue } from "../../core/sql.ts";

export interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values: SqlValue[];
}

const preparedTexts = new WeakMap<readonly string[], { readonly name: string; readonly text: string }>();

/** Constant statements are prepared once per connection; composed statements are not prepared. */
export function toStatement(query: SqlQuery): Statement {
  const values = query.values as SqlValue[];
  if (!Object.isFrozen(query.parts)) return { text: toText(query.parts), values };
  let prepared = preparedTexts.get(query.parts);
  if (prepared === undefined) {
    const text = toText(query.parts);
    prepared = { text, name: createHash("sha256").update(text).digest("base64url").slice(0, 32) };
    preparedTexts.set(query.parts, prepared);
  }
  return { ...prepared, values };
}

function toText(parts: readonly string[]): string {
  return parts.reduce((text, part, i) => (i === 0 ? part : `${text}$${i}${part}`), "");
}
