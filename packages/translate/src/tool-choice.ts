/** Which tools the target gets, and which of them is chosen. */
import type { Dialect } from "./dialect.ts";
import type { Losses } from "./losses.ts";
import { listOf, recordOf, type Json } from "./json.ts";
import type { NeutralRequest, Tool, ToolChoice } from "./neutral/request.ts";
import { sourceField } from "./source-fields.ts";
import { WEB_SEARCH } from "./web-search.ts";

/** The tools that the choice allows: no dialect needs more to express a list of allowed ones. */
export function allowedTools({
  toolChoice,
  tools,
}: Pick<NeutralRequest, "toolChoice" | "tools">): readonly Tool[] {
  const only = toolChoice !== null && "only" in toolChoice ? toolChoice.only : undefined;
  return only === undefined ? tools : tools.filter(({ name }) => only.includes(name));
}

/**
 * Tools that the provider runs are left out and listed: agents always offer them beside their own. A request that offers nothing else is about them,
 * and its answer would be invented.
 */
export function refuseIfOnlyHosted(
  source: Json,
  { tools, webSearch, toolChoice }: Pick<NeutralRequest, "tools" | "webSearch" | "toolChoice">,
  losses: Losses,
): void {
  if (tools.length > 0 || webSearch !== null || toolChoice?.mode === "none") return;
  const offered = listOf(source["tools"]).flatMap(namesOfHosted);
  if (offered.length > 0) {
    losses.refuse(
      "tools",
      `the target (${losses.target}) has none of the offered tools: ${offered.join(", ")}`,
    );
  }
}

/** Gemini names a tool by its member, the others by its type. */
function namesOfHosted(value: unknown): string[] {
  const tool = recordOf(value);
  const type = tool["type"];
  if (typeof type === "string") return [type];
  return Object.keys(tool).filter((name) => !/^function_?declarations$/i.test(name));
}

/** A tool of the provider, which is left out, cannot be forced on the target. */
export function resolveToolChoice(
  { toolChoice, tools, webSearch }: Pick<NeutralRequest, "toolChoice" | "tools" | "webSearch">,
  from: Dialect,
  losses: Losses,
): ToolChoice | null {
  if (toolChoice?.mode === "tool") {
    const tool = tools.find(({ name }) => name === toolChoice.name);
    if (tool !== undefined)
      return { ...toolChoice, isCustom: tool.kind === "custom", namespace: tool.namespace };
    if (toolChoice.name === WEB_SEARCH && webSearch !== null) return { mode: "web_search" };
  } else if (toolChoice?.mode === "web_search") {
    if (webSearch !== null) return toolChoice;
  } else if (toolChoice?.mode !== "required" || tools.length > 0 || webSearch !== null) return toolChoice;
  losses.refuse(sourceField(from, "toolChoice"), "it demands a tool that the target does not have");
  return null;
}
