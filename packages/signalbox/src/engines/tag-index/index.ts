/**
 * The tag index. README.md describes its promises, tables and invariants.
 *
 * Write: one `IndexDelta` per transaction. Read: one `Selection` per query. Unused keys and values: `deleteUnusedTags`. The functions of the
 * dictionary look up keys and values by their text. All of them take the database or a transaction, and the number of the account.
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
export { deleteUnusedTags } from "./delete-unused.ts";
export { BITMAP_MIN_USES, IndexDelta } from "./index-delta.ts";
export { type PositiveTagFilter, type ResourceQuery, Selection } from "./selection.ts";
