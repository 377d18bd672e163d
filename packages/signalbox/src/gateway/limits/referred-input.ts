/**
 * Requests whose input is not in them: an earlier response, a conversation, a file or a document that the provider has or fetches, and tools
 * that the provider runs and whose results it bills as input. How much the model reads cannot be told from the request.
 *
 * The text is searched for names of members and types, at any depth. A request that is wrongly taken for one of these only reserves more.
 */
import type { RequestBody } from "../../engines/relay/index.ts";

const REFERENCES =
  /"(?:previous_response_id|conversation|conversation_id|prompt_id|thread_id|container|file_ids?|file_url|file_?uri|cached_?content|s3_?location|vector_store_ids?|(?:web_)?search_options|plugins|(?:google|file|web)_?search(?:_?retrieval)?|google_?maps|url_?context|code_?execution|mcp_servers)"\s*:|"prompt"\s*:\s*\{|"type"\s*:\s*"(?:document|(?:web|file|x)_search|web_fetch|code_|mcp|computer|image_generation|shell|tool_search|live_search)/i;
/** Escapes in a name of a member, which the search would not see. */
const ESCAPES = "\\u";
/** Longer requests with escapes are not decoded: they count as references. */
const MAX_DECODED_BYTES = 256 * 1024;

/** Larger bodies are searched member by member. */
const MAX_SEARCHED_BYTES = 16 * 1024;

/** The body in lower case, for several searches; null for a larger one. Names of members and types are ASCII, so bytes may stand for characters. */
export function searchedText(body: RequestBody): string | null {
  if (body.kind !== "whole" || body.bytes.length > MAX_SEARCHED_BYTES) return null;
  return body.bytes.toString("latin1").toLowerCase();
}

/** `searched`: of `searchedText`, if the caller has it. */
export function refersToOtherInput(body: RequestBody, searched: string | null = null): boolean {
  if (body.kind === "none") return false;
  // A reference may follow in the part that has not arrived.
  if (body.kind === "streamed") return true;
  const text = searched ?? body.bytes.toString("latin1");
  return REFERENCES.test(text) || (text.includes(ESCAPES) && REFERENCES.test(decoded(body.bytes)));
}

/** The text without escapes in names; of a request that cannot be decoded, one that refers to other input. */
function decoded(bytes: Buffer): string {
  const unknown = '"conversation":';
  if (bytes.length > MAX_DECODED_BYTES) return unknown;
  try {
    return JSON.stringify(JSON.parse(bytes.toString()));
  } catch {
    // Providers differ in what they accept.
    return unknown;
  }
}
