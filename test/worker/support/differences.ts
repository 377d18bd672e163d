/**
 * Where this server answers otherwise than workerd on purpose: the case, its step, and the reason. The test fails for a difference that is not here, and
 * for an entry that is no difference any more.
 */
const OFFSET = "SQLite's driver in Node does not tell the offset of an error";
const SAYS_WHAT = "the message says what is not allowed";
const MORE = "allowed here, refused there: a program that runs there does not notice";
const WORDS = "the same class of error in other words";

export const DIFFERENCES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sql: {
    nulls: OFFSET,
    "syntax error": OFFSET,
    "no such column": OFFSET,
    "no such function": OFFSET,
    "a statement that is no text": OFFSET,
    begin: WORDS,
    commit: WORDS,
    rollback: WORDS,
    savepoint: WORDS,
    attach: SAYS_WHAT,
    "pragma journal_mode": SAYS_WHAT,
    "pragma user_version": SAYS_WHAT,
    load_extension: SAYS_WHAT,
    "trailing comment": MORE,
    "trailing semicolons": MORE,
    "internal table": SAYS_WHAT,
    "temp table": SAYS_WHAT,
    math: MORE,
  },
  "schema and settings": {
    "SELECT count(*) AS n FROM dbstat": SAYS_WHAT,
    "SELECT sqlite_version() AS v WHERE 0": MORE,
    "SELECT json_pretty('[1]') AS v": MORE,
  },
  transactions: {
    "use after rollback": WORDS,
    "use after the end": WORDS,
    "not a function": WORDS,
  },
  sockets: {
    "without new": WORDS,
    "101 without a socket": WORDS,
  },
  calls: {
    "there object without prototype": MORE,
    "back object without prototype": MORE,
    jurisdiction: MORE,
    "error object": "an error has no durableObjectId, which is not documented",
    "status text": "a status text that nobody set is empty, as the fetch standard says",
    "fetch a relative address": WORDS,
  },
  "hibernating sockets": {
    "answer to large:16384": WORDS,
  },
  "agent requests": {
    "a request that fails": "errors of this server are JSON with a code",
  },
};
