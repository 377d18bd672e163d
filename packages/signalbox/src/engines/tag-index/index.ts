export { findKey, findValue, TYPE_KEY_NO } from "./dictionary.ts";
export { BITMAP_MIN_USES, IndexDelta } from "./index-delta.ts";
export { type ResourceQuery, Selection } from "./selection.ts";
export { fromStoredText, MAX_PREFIX_BYTES, prefixRange, toSortKey } from "./sort-key.ts";
