/** Query parameters and cursors of the lists. See tags/README.md. */
import { hash } from "node:crypto";
import { isLongerThan, parseTagFilters, TAG_LIMITS } from "@signalbox/protocol";
import { invalidRequest } from "../core/invalid-request.ts";
import type { ResourceTypes } from "./payload.ts";
import { MAX_PREFIX_BYTES, type ResourceQuery } from "../engines/tag-index/index.ts";

/** Checks the filters first: 1010, then the errors of each filter, as the contract requires. The contract does not order the other errors. */
export function parseResourceQuery(query: URLSearchParams, types: ResourceTypes): ResourceQuery {
  const filters = parseTagFilters(query.getAll("tag"));
  const typeNames = query.getAll("type");
  for (const type of typeNames) types.require(type, false);
  const ids = query.getAll("id");
  if (ids.length > TAG_LIMITS.ids) throw invalidRequest(`id: at most ${TAG_LIMITS.ids} ids`);
  const name = query.get("name");
  if (name !== null && isLongerThan(name, TAG_LIMITS.nameLength)) {
    throw invalidRequest(`name: at most ${TAG_LIMITS.nameLength} characters`);
  }
  return {
    filters,
    isCaseInsensitive: parseFlag(query, "case_insensitive"),
    types: typeNames,
    // PostgreSQL rejects NUL in a text. No id or name contains NUL, so the replacement matches nothing.
    ids: ids.map((id) => id.replaceAll("\0", "\uFFFD")),
    name: name === null || name === "" ? null : name.replaceAll("\0", "\uFFFD"),
  };
}

/** The resources whose keys or values are listed. Null means all resources, or all of the one type. */
export function parseVocabularyQuery(query: URLSearchParams, types: readonly string[]): ResourceQuery | null {
  const filters = parseTagFilters(query.getAll("tag"));
  const isCaseInsensitive = parseFlag(query, "case_insensitive");
  return filters.length === 0 && types.length < 2
    ? null
    : { filters, isCaseInsensitive, types, ids: [], name: null };
}

export function parseFlag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  if (text !== null && text !== "true" && text !== "false")
    throw invalidRequest(`${name}: must be true or false`);
  return text === "true";
}

/** `total=exact` requests the number of all matches. */
export function wantsTotal(query: URLSearchParams): boolean {
  const text = query.get("total");
  if (text !== null && text !== "exact") throw invalidRequest("total: must be exact");
  return text === "exact";
}

export function parsePrefix(query: URLSearchParams): string {
  const prefix = query.get("prefix") ?? "";
  if (Buffer.byteLength(prefix) > MAX_PREFIX_BYTES)
    throw invalidRequest(`prefix: at most ${MAX_PREFIX_BYTES} bytes`);
  return prefix;
}

/** A position in a feed: a number or `newest`; null if absent. */
export function parsePosition(text: string | null | undefined, name: string): number | "newest" | null {
  if (text === null || text === undefined || text === "") return null;
  if (text === "newest") return text;
  const position = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(position)) throw invalidRequest(`${name}: not a position`);
  return position;
}

export function parseLimit(query: URLSearchParams): number {
  const text = query.get("limit");
  if (text === null) return TAG_LIMITS.page;
  const limit = Number(text);
  if (!/^\d+$/.test(text) || limit < 1 || limit > TAG_LIMITS.page) {
    throw invalidRequest(`limit: must be a number from 1 to ${TAG_LIMITS.page}`);
  }
  return limit;
}

/** A cursor contains a hash of the query, so that it is rejected with another query. */
export function encodeCursor(position: string, query: object): string {
  return Buffer.from(`${queryHash(query)}.${position}`).toString("base64url");
}

/** The position in a cursor; null without a cursor. */
export function decodeCursor(cursor: string | null, query: object): string | null {
  if (cursor === null || cursor === "") return null;
  const [hashText, position] = Buffer.from(cursor, "base64url").toString().split(".");
  if (position === undefined || position === "" || hashText !== queryHash(query)) {
    throw invalidRequest("cursor: does not belong to this list");
  }
  return position;
}

/** Like `decodeCursor`, for lists whose positions are numbers. */
export function decodeNumericCursor(cursor: string | null, query: object): number | null {
  const position = decodeCursor(cursor, query);
  return position === null ? null : (parsePosition(position, "cursor") as number);
}

/** Clients of the public interface read `cursor` or `cursors.after`. */
export function pageInfo(count: number, cursor: string | null): object {
  return { count, cursor, cursors: cursor === null ? {} : { after: cursor } };
}

function queryHash(query: object): string {
  return hash("sha256", JSON.stringify(query), "base64url").slice(0, 8);
}
