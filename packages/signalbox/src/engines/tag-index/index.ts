/**
 * The tag index. README.md describes tables, sets and invariants.
 *
 * Write: an `IndexDelta` per transaction. Read: a `Selection` per query. Every function takes the account number and something that runs SQL.
 */
export {
  findKey,
  findValue,
  fromStoredText,
  MAX_PREFIX_BYTES,
  prefixRange,
  toSortKey,
  TYPE_KEY_NO,
} from "./dictionary.ts";
export { forgetUnusedTags } from "./forget-unused.ts";
export { BITMAP_MIN_USES, IndexDelta } from "./index-delta.ts";
export { type ResourceQuery, Selection } from "./selection.ts";
