/** The chosen tool among those that are left: a tool of the provider, which is left out, cannot be forced on the target. */
import type { Dialect } from "./dialect.ts";
import type { Losses } from "./losses.ts";
import type { NeutralRequest, ToolChoice } from "./neutral/request.ts";
import { sourceField } from "./source-fields.ts";

export function resolveToolChoice(
  { toolChoice, tools }: Pick<NeutralRequest, "toolChoice" | "tools">,
  from: Dialect,
  losses: Losses,
): ToolChoice | null {
  if (toolChoice?.mode === "tool") {
    const tool = tools.find(({ name }) => name === toolChoice.name);
    if (tool !== undefined)
      return { ...toolChoice, isCustom: tool.kind === "custom", namespace: tool.namespace };
  } else if (toolChoice?.mode !== "required" || tools.length > 0) return toolChoice;
  losses.refuse(sourceField(from, "toolChoice"), "it demands a tool that the target does not have");
  return null;
}
