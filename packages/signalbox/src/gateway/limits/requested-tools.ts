/**
 * Tools of the provider that a request offers to the model: what they may do is reserved, as far as it is billed beside the tokens. The text is searched
 * for names, at any depth: a request that is wrongly taken for one of these only reserves more.
 */
import { memoryOf, NO_USAGE, type ToolUse, type Usage, type UsageRound } from "../../engines/relay/index.ts";
import type { Step } from "../step/step.ts";
import { pictureTokens } from "./picture-tokens.ts";

type OfferedTools = Partial<Pick<Usage, "searches" | "fileSearches" | "tools">>;

/** In the names of the tools. The rest is searched only in a text that has one of them. */
const WORDS = ["earch", "nterpreter", "mage_generation", 'aps"', 'shell"', "ode_execution"];
const WEB_SEARCH =
  /"(?:web_?search|google_?search)(?:_options|_?retrieval)?"\s*:|"type"\s*:\s*"(?:web_search|live_search)/i;
const FILE_SEARCH = /"file_?search"\s*:|"type"\s*:\s*"file_search/i;
const MAX_USES = /"max_uses"\s*:\s*(\d{1,4})/g;
/** Searches that are reserved for a request that offers them without a limit. */
const ASSUMED_SEARCHES = 5;

const MAPS = /"google_?maps"\s*:/i;
const PICTURES = /\{[^{}]*"type"\s*:\s*"image_generation"[^{}]*\}|"type"\s*:\s*"image_generation"/gi;
/** The model that makes pictures unless the request names another. */
const PICTURE_MODEL = "gpt-image-1";
const CODE = /"type"\s*:\s*"(?:code_interpreter|shell|code_execution)/i;
const MEMORY = /"memory_limit"\s*:\s*"([^"]{1,8})"/gi;
/** OpenAI's largest container. */
const MAX_GIGABYTES = 64;

/** Empty for a request that offers none. */
export function offeredTools(body: Buffer): OfferedTools {
  if (!WORDS.some((word) => body.includes(word, 0, "latin1"))) return {};
  const text = body.toString("latin1");
  let allowed = -1;
  for (const [, uses] of text.matchAll(MAX_USES)) allowed = Math.max(allowed, Number(uses));
  const searches = allowed === -1 ? ASSUMED_SEARCHES : allowed;
  const tools = billedTools(text);
  return {
    ...(WEB_SEARCH.test(text) ? { searches } : {}),
    ...(FILE_SEARCH.test(text) ? { fileSearches: ASSUMED_SEARCHES } : {}),
    ...(tools === null ? {} : { tools }),
  };
}

function billedTools(text: string): ToolUse | null {
  const rounds = [...text.matchAll(PICTURES)].map(([tool]) => pictureRound(tool));
  const sessions = CODE.test(text) ? gigabytesIn(text) : 0;
  const maps = MAPS.test(text) ? 1 : 0;
  return rounds.length + sessions + maps === 0 ? null : { sessions, maps, rounds, isUnpriced: false };
}

function gigabytesIn(text: string): number {
  const limits = [...text.matchAll(MEMORY)].map(([, limit]) => memoryOf(limit) ?? MAX_GIGABYTES);
  return Math.max(1, ...limits);
}

function pictureRound(tool: string): UsageRound {
  const member = (name: string) => new RegExp(`"${name}"\\s*:\\s*"([^"]*)"`).exec(tool)?.[1] ?? "";
  const tokensOut = pictureTokens(member("quality"), member("size"));
  return {
    model: member("model") || PICTURE_MODEL,
    usage: { ...NO_USAGE, tokensOut, tokensOutImage: tokensOut },
  };
}

/** OpenAI's models for searches search once for each chat completion, and its answer does not count that. */
const SEARCHING_MODELS = /^(?:openai\/)?gpt-[\w.-]*-search-/;
const OF_OPENAI: ReadonlySet<string> = new Set(["openai", "azure-openai"]);

/** Searches that a call made which its answer does not count. */
export function uncountedSearches({ provider, requestType, model }: Step): number {
  return requestType === "chat" && OF_OPENAI.has(provider.slug) && SEARCHING_MODELS.test(model) ? 1 : 0;
}

/**
 * Dollars for what a tool of the provider may have done whose price is not known, so that limits count more than nothing: the dearest search, a large
 * container, and the dearest token of a picture that is known.
 */
const ASSUMED_SEARCH = 0.035;
const ASSUMED_TOOL = 0.12;
const ASSUMED_PICTURE_TOKEN = 0.00004;

/** Null for usage without tools. */
export function assumedToolCost({ searches, fileSearches, tools }: Usage): number | null {
  if (searches + fileSearches === 0 && tools === null) return null;
  const { sessions = 0, maps = 0, rounds = [], isUnpriced = false } = tools ?? {};
  const pictures = rounds.reduce((sum, { usage }) => sum + usage.tokensIn + usage.tokensOut, 0);
  return (
    (searches + fileSearches + maps) * ASSUMED_SEARCH +
    (sessions + (isUnpriced ? 1 : 0)) * ASSUMED_TOOL +
    pictures * ASSUMED_PICTURE_TOKEN
  );
}
