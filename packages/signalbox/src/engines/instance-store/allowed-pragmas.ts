/**
 * The PRAGMA statements that guarded statements may use: those that the runtime of the originals allows. They describe the schema, check it, or set what lasts as long as the connection,
 * which is until the instance has been idle.
 */
import type { ReservedNames } from "./reserved-names.ts";

/** What may be given to a PRAGMA; null: nothing was given. */
type Check = (value: string | null, reserved: ReservedNames) => boolean;

const nothing: Check = (value) => value === null;
const anything: Check = () => true;
const name: Check = (value, reserved) => value !== null && !reserved.has(value);
const nameOrNothing: Check = (value, reserved) => !reserved.has(value);
/** As SQLite spells it; quotes are a part of the value. */
const booleanOrNothing: Check = (value) =>
  value === null || /^(?:true|false|yes|no|on|off|1|0)/i.test(value.replace(/^(['"])(.*)\1$/, "$2"));
const integerOrNothing: Check = (value) => value === null || /^[-+]?(?:\d+|0x[\da-f]+)$/i.test(value);

const DESCRIPTIONS: Readonly<Record<string, Check>> = {
  // The R*Tree module reads the size, and full-text tables the version.
  data_version: nothing,
  page_size: nothing,
  foreign_key_check: nameOrNothing,
  foreign_key_list: name,
  index_info: name,
  index_list: name,
  index_xinfo: name,
  table_info: name,
  table_list: anything,
  table_xinfo: name,
};

const ALLOWED: Readonly<Record<string, Check>> = {
  ...DESCRIPTIONS,
  quick_check: nameOrNothing,
  optimize: integerOrNothing,
  case_sensitive_like: booleanOrNothing,
  defer_foreign_keys: booleanOrNothing,
  foreign_keys: booleanOrNothing,
  ignore_check_constraints: booleanOrNothing,
  legacy_alter_table: booleanOrNothing,
  recursive_triggers: booleanOrNothing,
  reverse_unordered_selects: booleanOrNothing,
};

/** True if a value, or none, may be given to it. Names are in lower case. */
export function isKnownPragma(pragma: string): boolean {
  return Object.hasOwn(ALLOWED, pragma);
}

export function isAllowedPragma(pragma: string, value: string | null, reserved: ReservedNames): boolean {
  return isKnownPragma(pragma) && ALLOWED[pragma]?.(value, reserved) === true;
}

/** True for a PRAGMA that only tells about the schema. */
export function describesSchema(pragma: string): boolean {
  return Object.hasOwn(DESCRIPTIONS, pragma);
}

/**
 * `defer_foreign_keys` lasts until the transaction ends, which then fails if a reference is still violated; `optimize` may analyze tables. Both need an open transaction.
 */
export function writesAsPragma(pragma: string): boolean {
  return pragma === "defer_foreign_keys" || pragma === "optimize";
}
