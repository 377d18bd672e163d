/** How difficult a request looks, and which turn of its conversation it belongs to, in any of the dialects. Rules, not a model: they cost nothing and can be foretold. */
import { type Fields, isFields } from "../../core/fields.ts";

/** The largest result of `estimateDifficulty`. */
export const HARDEST = 4;

const LONG_TOKENS = 4000;
const VERY_LONG_TOKENS = 32_000;
const MAX_POINTS_OF_SIZE = 2;
const CODE = /```|\bfunction\b|\bclass\b|=>|\{\s*\n/;
const MANY_TOOLS = 8;

/** From 0 to `HARDEST`: size, tools, code in the last input, and the effort that the caller asks for. */
export function estimateDifficulty(fields: Fields, tokens: number): number {
  const effort = effortOf(fields);
  if (effort === "high") return HARDEST;
  if (effort === "low") return 0;
  const tools = Array.isArray(fields["tools"]) ? fields["tools"].length : 0;
  const size = Math.min(MAX_POINTS_OF_SIZE, Number(tokens > LONG_TOKENS) + Number(tokens > VERY_LONG_TOKENS));
  const points =
    size + Number(tools > 0) + Number(tools > MANY_TOOLS) + Number(CODE.test(lastInputOf(fields).text));
  return Math.min(points, HARDEST);
}

function effortOf(fields: Fields): "low" | "high" | null {
  const { reasoning, thinking } = fields;
  const effort = fields["reasoning_effort"] ?? (isFields(reasoning) ? reasoning["effort"] : undefined);
  if (effort === "high" || effort === "xhigh" || effort === "max") return "high";
  if (effort === "none" || effort === "minimal") return "low";
  return isFields(thinking) && thinking["type"] === "enabled" ? "high" : null;
}

/** A text that is the same for all calls of one turn: an input of the user, and the calls with results of tools that follow it. */
export function turnOf(fields: Fields): string {
  const { count, text } = lastInputOf(fields);
  return `${count} ${text}`;
}

function lastInputOf(fields: Fields): { readonly count: number; readonly text: string } {
  const list = fields["messages"] ?? fields["input"] ?? fields["contents"];
  if (typeof list === "string") return { count: 1, text: list };
  let count = 0;
  let text = "";
  for (const item of Array.isArray(list) ? list : []) {
    if (!isFields(item) || !isInput(item)) continue;
    count += 1;
    text = textOf(item["content"] ?? item["parts"]);
  }
  return { count, text };
}

/** Anthropic and Gemini send the results of tools in the name of the user. */
function isInput({ role, content, parts }: Fields): boolean {
  if (role !== "user") return false;
  const pieces = [content, parts].flat().filter(isFields);
  return !pieces.some((piece) => piece["type"] === "tool_result" || "functionResponse" in piece);
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const pieces = Array.isArray(content) ? content.filter(isFields) : [];
  return pieces.map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}
