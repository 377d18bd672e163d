/** Marks that end a cached prefix, in the spellings of messages (`cache_control`) and OpenAI (`prompt_cache_breakpoint`). */
import { isRecord, type Json } from "./json.ts";
import type { CacheMark } from "./neutral/part.ts";

/** The mark on a part, a tool or a request, in either spelling. */
export function cacheMarkOf(holder: Json): CacheMark | null {
  const control = holder["cache_control"] ?? holder["prompt_cache_breakpoint"];
  if (!isRecord(control)) return null;
  return control["ttl"] === "1h" || control["ttl"] === "12h" ? "long" : "default";
}

export function toCacheControl(mark: CacheMark): Json {
  return mark === "long" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
}

export function toCacheBreakpoint(mark: CacheMark): Json {
  return mark === "long" ? { mode: "explicit", ttl: "12h" } : { mode: "explicit" };
}
