/**
 * What an answer says about tools that the provider ran and bills beside the tokens. The usage counts none of them, except Anthropic's searches.
 *
 * A tool of which the answer does not say what is billed makes the price of the call unknown (`isUnpriced`), and so does an item of OpenAI Responses that
 * is the call of an unknown tool.
 */
import { type Fields, isFields } from "../../core/fields.ts";
import { addTools, type ToolUse, type Usage } from "./usage.ts";

type ReadCounts = (usage: Fields) => Usage;

const NO_TOOLS: ToolUse = { sessions: 0, maps: 0, rounds: [], isUnpriced: false };
const UNPRICED: ToolUse = { ...NO_TOOLS, isUnpriced: true };

/** `readCounts` reads the usage of another model. */
export function readTools(object: Fields, readCounts: ReadCounts): ToolUse | null {
  const { output, candidates } = object;
  if (Array.isArray(output)) return ofResponses(object, fieldsIn(output), readCounts);
  if (Array.isArray(candidates)) return ofGemini(fieldsIn(candidates));
  return ofMessages(object);
}

/** Calls of tools that the client runs, or that cost nothing beside the tokens; searches are counted elsewhere. */
const WITHOUT_PRICE: ReadonlySet<unknown> = new Set([
  "function_call",
  "custom_tool_call",
  "computer_call",
  "local_shell_call",
  "apply_patch_call",
  "mcp_call",
  "tool_search_call",
  "web_search_call",
  "file_search_call",
]);

function ofResponses(object: Fields, output: readonly Fields[], readCounts: ReadCounts): ToolUse | null {
  const containers = new Set<unknown>();
  let hasPictures = false;
  let isUnknown = false;
  for (const { type, container_id: container, environment } of output) {
    if (type === "code_interpreter_call") containers.add(container);
    else if (type === "shell_call") {
      if (isFields(environment) && environment["type"] !== "local")
        containers.add(environment["container_id"]);
    } else if (type === "image_generation_call") hasPictures = true;
    else if (typeof type === "string" && type.endsWith("_call") && !WITHOUT_PRICE.has(type)) isUnknown = true;
  }
  const offered = fieldsIn(object["tools"]);
  const code = containers.size === 0 ? null : codeSessions(offered, containers.size);
  const pictures = hasPictures ? (madePictures(object, offered, readCounts) ?? UNPRICED) : null;
  return addTools(addTools(code, pictures), isUnknown ? UNPRICED : null);
}

/** A container that the request names has a size that the answer does not state. */
function codeSessions(offered: readonly Fields[], containers: number): ToolUse {
  const tool = offered.find(({ type }) => type === "code_interpreter" || type === "shell");
  const container = tool?.["container"] ?? tool?.["environment"];
  if (typeof container === "string") return UNPRICED;
  if (isFields(container) && container["type"] === "container_reference") return UNPRICED;
  const limit = isFields(container) ? container["memory_limit"] : undefined;
  const gigabytes = limit === undefined || limit === null ? 1 : memoryOf(limit);
  return gigabytes === null ? UNPRICED : { ...NO_TOOLS, sessions: containers * gigabytes };
}

/** `4g`: gigabytes. Null for another form. */
export function memoryOf(limit: unknown): number | null {
  const gigabytes = /^(\d{1,3})g$/i.exec(String(limit))?.[1];
  return gigabytes === undefined ? null : Number(gigabytes);
}

/** The usage of the model that made the pictures. Null when the answer does not have it, or does not name the model. */
function madePictures(object: Fields, offered: readonly Fields[], readCounts: ReadCounts): ToolUse | null {
  const used = isFields(object["tool_usage"]) ? object["tool_usage"]["image_gen"] : undefined;
  const model = offered.find(({ type }) => type === "image_generation")?.["model"];
  if (!isFields(used) || typeof model !== "string") return null;
  const usage = readCounts(used);
  return usage.tokensOut === 0 ? null : { ...NO_TOOLS, rounds: [{ model, usage }] };
}

/** An answer that has places of Google Maps is billed once. */
function ofGemini(candidates: readonly Fields[]): ToolUse | null {
  const hasPlaces = candidates.some(({ groundingMetadata }) => {
    const chunks = isFields(groundingMetadata) ? fieldsIn(groundingMetadata["groundingChunks"]) : [];
    return chunks.some(({ maps }) => isFields(maps));
  });
  return hasPlaces ? { ...NO_TOOLS, maps: 1 } : null;
}

/** Anthropic names the container that code ran in. Code beside its tools for the web is free. */
function ofMessages({ container, delta, usage }: Fields): ToolUse | null {
  if (!isFields(container) && !(isFields(delta) && isFields(delta["container"]))) return null;
  const counts = isFields(usage) ? usage["server_tool_use"] : undefined;
  const isOfWeb =
    isFields(counts) && (isCount(counts["web_search_requests"]) || isCount(counts["web_fetch_requests"]));
  return isOfWeb ? null : { ...NO_TOOLS, sessions: 1 };
}

/** Mistral counts its connectors, whose prices differ, beside the tokens. */
export function readConnectors({ connectors }: Fields): ToolUse | null {
  return isFields(connectors) && Object.values(connectors).some(isCount) ? UNPRICED : null;
}

/** What shows that a part of an answer may have tools. */
export const TOOL_MARKERS: readonly string[] = ['_call"', '"container"'];
const OFFERED_PICTURES = /\{[^{}]*"type"\s*:\s*"image_generation"[^{}]*\}/;
const TOOL_USAGE = /"tool_usage"\s*:\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})/;

/**
 * The same of a part of an answer of OpenAI Responses that is too long to parse, as answers with pictures are: the items are not looked for, what stands
 * behind them is read. `searches` is null when the part does not say.
 */
export function scanTools(
  text: string,
  readCounts: ReadCounts,
): { readonly tools: ToolUse | null; readonly searches: number | null } {
  const offered = parsed(OFFERED_PICTURES.exec(text)?.[0]);
  const counted = parsed(TOOL_USAGE.exec(text)?.[1]);
  if (counted === null) {
    const mayHaveRun = offered !== null || text.includes('"image_generation_call"');
    return { tools: mayHaveRun ? UNPRICED : null, searches: null };
  }
  const pictures = isFields(counted["image_gen"]) ? readCounts(counted["image_gen"]).tokensOut : 0;
  const output = pictures > 0 ? [{ type: "image_generation_call" }] : [];
  const search = counted["web_search"];
  const searches = isFields(search) ? search["num_requests"] : undefined;
  return {
    tools: ofResponses({ tool_usage: counted, tools: [offered] }, output, readCounts),
    searches: typeof searches === "number" ? searches : null,
  };
}

function parsed(text: string | undefined): Fields | null {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && value > 0;
}

function fieldsIn(value: unknown): Fields[] {
  return Array.isArray(value) ? (value as unknown[]).filter((one) => isFields(one)) : [];
}
