/**
 * The search of the web that a provider runs for its model: a tool of messages, responses and Gemini, and an option of chat. Each dialect limits it by
 * what it knows: a number of searches, sites, a place.
 */
import { InvalidRequestError } from "./errors.ts";
import {
  listOf,
  optionalNumber,
  optionalRecord,
  optionalText,
  recordOf,
  requireList,
  requireText,
  textOf,
  type Json,
} from "./json.ts";
import type { Dialect } from "./dialect.ts";
import type { Losses } from "./losses.ts";
import type { NeutralRequest, WebSearch } from "./neutral/request.ts";
import type { FilledTraits } from "./traits.ts";

/** The name of the tool in messages. */
export const WEB_SEARCH = "web_search";

/** Of `include` in responses: the pages that a search has found. */
export const SEARCH_SOURCES = "web_search_call.action.sources";

const MESSAGES_TOOL = /^web_search_\d+$/;
const RESPONSES_TOOL = /^web_search(?:_preview)?(?:_\d{4}_\d\d_\d\d)?$/;
const CHAT_OPTION = "web_search_options";
const GEMINI_TOOL = /^google_?search(?:_?retrieval)?$/i;

/** Sent to messages: the version without the execution of code, which every model takes that can search. */
const MESSAGES_VERSION = "web_search_20250305";

const PLAIN: Omit<WebSearch, "field"> = {
  maxUses: null,
  allowedDomains: [],
  blockedDomains: [],
  location: null,
  contextSize: null,
};

/** Whether a request of a dialect offers the search. */
export function offersWebSearch(from: Dialect, body: Json): boolean {
  if (from === "chat") return body[CHAT_OPTION] != null;
  return listOf(body["tools"]).some((value) => {
    const tool = recordOf(value);
    if (from === "gemini") return Object.keys(tool).some((name) => GEMINI_TOOL.test(name));
    return from === "messages" ? MESSAGES_TOOL.test(String(tool["type"])) : isResponsesSearch(tool);
  });
}

/** Whether a tool of responses, or a choice, is the search. */
export function isResponsesSearch(tool: Json): boolean {
  return RESPONSES_TOOL.test(String(tool["type"]));
}

/** The tool of messages; null for another tool. */
export function decodeMessagesSearch(tool: Json, path: string): WebSearch | null {
  if (!MESSAGES_TOOL.test(String(tool["type"]))) return null;
  return {
    ...PLAIN,
    field: `tools.${textOf(tool["type"])}`,
    maxUses: optionalNumber(tool["max_uses"], `${path}.max_uses`),
    allowedDomains: domainsOf(tool["allowed_domains"], `${path}.allowed_domains`),
    blockedDomains: domainsOf(tool["blocked_domains"], `${path}.blocked_domains`),
    location: locationOf(tool["user_location"], `${path}.user_location`),
  };
}

/** The tool of responses; null for another tool. */
export function decodeResponsesSearch(tool: Json, path: string): WebSearch | null {
  // Without access to the web, the search reads copies that OpenAI keeps.
  if (!isResponsesSearch(tool) || tool["external_web_access"] === false) return null;
  const filters = optionalRecord(tool["filters"], `${path}.filters`) ?? {};
  return {
    ...PLAIN,
    field: `tools.${textOf(tool["type"])}`,
    allowedDomains: domainsOf(filters["allowed_domains"], `${path}.filters.allowed_domains`),
    blockedDomains: domainsOf(filters["blocked_domains"], `${path}.filters.blocked_domains`),
    location: locationOf(tool["user_location"], `${path}.user_location`),
    contextSize: optionalText(tool["search_context_size"], `${path}.search_context_size`),
  };
}

/** The option of chat. */
export function decodeChatSearch(options: Json): WebSearch {
  const path = CHAT_OPTION;
  const place = optionalRecord(options["user_location"], `${path}.user_location`);
  return {
    ...PLAIN,
    field: CHAT_OPTION,
    location: locationOf(place?.["approximate"], `${path}.user_location.approximate`),
    contextSize: optionalText(options["search_context_size"], `${path}.search_context_size`),
  };
}

/** A member of a tool of Gemini; null for another tool. */
export function decodeGeminiSearch(name: string, value: unknown, path: string): WebSearch | null {
  if (!GEMINI_TOOL.test(name)) return null;
  const settings = recordOf(value);
  const excluded = settings["excludeDomains"] ?? settings["exclude_domains"];
  return { ...PLAIN, field: path, blockedDomains: domainsOf(excluded, `${path}.excludeDomains`) };
}

/** A target without the search loses it, and is left to what else the request offers. */
export function resolveWebSearch(
  { webSearch, tools }: Pick<NeutralRequest, "webSearch" | "tools">,
  from: Dialect,
  to: Dialect,
  traits: FilledTraits,
  losses: Losses,
): WebSearch | null {
  if (webSearch === null) return null;
  // Gemini refuses a request with both.
  if (traits.webSearch && (to !== "gemini" || tools.length === 0)) return webSearch;
  // The option of chat is no tool beside others: the client wants an answer that is searched for.
  if (webSearch.field === CHAT_OPTION) losses.refuse(webSearch.field);
  else losses.note(webSearch.field);
  if (from === "responses" && webSearch.maxUses !== null) losses.note("max_tool_calls");
  return null;
}

export function encodeMessagesSearch(search: WebSearch, losses: Losses): Json {
  const { maxUses, allowedDomains, blockedDomains, location, contextSize } = search;
  if (allowedDomains.length > 0 && blockedDomains.length > 0) {
    losses.refuse("tools.web_search", "the target takes either allowed or blocked domains");
  }
  if (contextSize !== null && contextSize !== "medium") losses.note("tools.web_search.search_context_size");
  return {
    type: MESSAGES_VERSION,
    name: WEB_SEARCH,
    ...(maxUses === null ? {} : { max_uses: maxUses }),
    ...(allowedDomains.length === 0 ? {} : { allowed_domains: allowedDomains }),
    ...(blockedDomains.length === 0 || allowedDomains.length > 0 ? {} : { blocked_domains: blockedDomains }),
    ...(location === null ? {} : { user_location: { type: "approximate", ...location } }),
  };
}

/** The tool; the number of searches is a member of the request. */
export function encodeResponsesSearch(search: WebSearch, losses: Losses): Json {
  const { allowedDomains, blockedDomains, location, contextSize } = search;
  if (blockedDomains.length > 0) losses.refuse("tools.web_search.blocked_domains");
  return {
    type: "web_search",
    ...(allowedDomains.length === 0 ? {} : { filters: { allowed_domains: allowedDomains } }),
    ...(contextSize === null ? {} : { search_context_size: contextSize }),
    ...(location === null ? {} : { user_location: { type: "approximate", ...location } }),
  };
}

export function encodeChatSearch(search: WebSearch, losses: Losses): Json {
  const { maxUses, allowedDomains, blockedDomains, location, contextSize } = search;
  if (allowedDomains.length > 0) losses.refuse("tools.web_search.allowed_domains");
  if (blockedDomains.length > 0) losses.refuse("tools.web_search.blocked_domains");
  if (maxUses !== null) losses.note("tools.web_search.max_uses");
  return {
    ...(contextSize === null ? {} : { search_context_size: contextSize }),
    ...(location === null ? {} : { user_location: { type: "approximate", approximate: location } }),
  };
}

export function encodeGeminiSearch(search: WebSearch, losses: Losses): Json {
  const { maxUses, allowedDomains, blockedDomains, location, contextSize } = search;
  if (allowedDomains.length > 0) losses.refuse("tools.web_search.allowed_domains");
  if (blockedDomains.length > 0) losses.refuse("tools.web_search.blocked_domains");
  if (maxUses !== null) losses.note("tools.web_search.max_uses");
  if (location !== null) losses.note("tools.web_search.user_location");
  if (contextSize !== null && contextSize !== "medium") losses.note("tools.web_search.search_context_size");
  return { googleSearch: {} };
}

function domainsOf(value: unknown, path: string): readonly string[] {
  return value == null ? [] : requireList(value, path).map((one, i) => requireText(one, `${path}[${i}]`));
}

const PLACE = ["city", "region", "country", "timezone"] as const;

function locationOf(value: unknown, path: string): WebSearch["location"] {
  const given = optionalRecord(value, path);
  if (given === null) return null;
  if (given["type"] != null && given["type"] !== "approximate") {
    throw new InvalidRequestError(`${path}.type`, `${path}.type must be approximate`);
  }
  const known = PLACE.flatMap((name) => {
    const text = optionalText(given[name], `${path}.${name}`);
    return text === null ? [] : [[name, text] as const];
  });
  return Object.fromEntries(known);
}
