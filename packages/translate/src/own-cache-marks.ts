/**
 * Marks for prompts of clients whose own dialect caches without any. Chat, responses and Gemini cache every prefix by themselves; messages caches only what
 * is marked, so that a coding agent of another dialect would pay for its whole conversation at every turn.
 *
 * A mark costs a quarter of its input more once, and saves nine tenths of it at every repetition. So what will be repeated is marked: tools and system texts of
 * a request with tools, and, in a conversation, its last two turns of the user: the one before the last ends the prefix that the last call has written.
 * A single question has no marks. The provider takes four; three are used.
 */
import type { Part, TextPart } from "./neutral/part.ts";
import type { NeutralRequest, Tool, Turn } from "./neutral/request.ts";

/** The request with marks. One that has marks of the client is returned as it is. */
export function withOwnCacheMarks(request: NeutralRequest): NeutralRequest {
  const { system, turns, tools, cacheKey } = request;
  const isConversation = cacheKey !== null || turns.some(({ role }) => role === "assistant");
  if ((!isConversation && tools.length === 0) || hasMarks(request)) return request;
  return {
    ...request,
    system: markLast(system, isText),
    // Tools stand before the system texts, whose mark covers them.
    tools: system.some(isText) ? tools : markLastTool(tools),
    turns: isConversation ? markTurns(turns) : turns,
  };
}

function hasMarks({ system, turns, tools, cache }: NeutralRequest): boolean {
  return (
    cache !== null ||
    system.some(isMarked) ||
    tools.some((tool) => tool.kind === "function" && tool.cache !== null) ||
    turns.some(({ parts }) => parts.some(isMarked))
  );
}

function isMarked(part: Part): boolean {
  return "cache" in part && part.cache !== undefined;
}

/** Blank texts are not sent. */
function isText({ text }: TextPart): boolean {
  return text.trim() !== "";
}

function mayBear(part: Part): boolean {
  if (part.type === "text") return isText(part);
  return part.type === "image" || part.type === "file" || part.type === "tool_result";
}

const MARKED_TURNS = 2;

function markTurns(turns: readonly Turn[]): readonly Turn[] {
  let left = MARKED_TURNS;
  return turns
    .toReversed()
    .map((turn) => {
      if (left === 0 || turn.role !== "user" || !turn.parts.some(mayBear)) return turn;
      left -= 1;
      return { ...turn, parts: markLast(turn.parts, mayBear) };
    })
    .toReversed();
}

function markLast<T extends Part>(parts: readonly T[], mayMark: (part: T) => boolean): readonly T[] {
  const last = parts.findLastIndex(mayMark);
  return parts.map((part, i) => (i === last ? { ...part, cache: "default" as const } : part));
}

function markLastTool(tools: readonly Tool[]): readonly Tool[] {
  const last = tools.findLastIndex(({ kind }) => kind === "function");
  return tools.map((tool, i) =>
    i === last && tool.kind === "function" ? { ...tool, cache: "default" as const } : tool,
  );
}
