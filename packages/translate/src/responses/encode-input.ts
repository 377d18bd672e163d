/** Turns into the input items of a responses request. */
import { toCacheBreakpoint } from "../cache-marks.ts";
import { urlOfSource } from "../data-uri.ts";
import type { Part, PromptPart, TextPart, ToolCallPart, ToolResultPart } from "../neutral/part.ts";
import type { Turn } from "../neutral/request.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { sourceField } from "../source-fields.ts";

type Item = Record<string, unknown>;

/** System texts as `instructions`; with cache marks that the provider accepts, as a message, which can hold them. */
export function encodeSystem(
  parts: readonly TextPart[],
  environment: EncodeEnvironment,
): { instructions: string | null; items: Item[] } {
  if (parts.length === 0) return { instructions: null, items: [] };
  const isMarked = parts.some((part) => part.cache !== undefined);
  if (isMarked && environment.traits.takesCacheBreakpoints) {
    return {
      instructions: null,
      items: [{ type: "message", role: "system", content: encodeContent(parts, "system", environment) }],
    };
  }
  if (isMarked) environment.losses.note(sourceField(environment.from, "cache"));
  return { instructions: parts.map((part) => part.text).join("\n\n"), items: [] };
}

export function encodeInput(turns: readonly Turn[], environment: EncodeEnvironment): Item[] {
  const custom = new Set(
    turns.flatMap((turn) =>
      turn.parts.flatMap((part) => (part.type === "tool_call" && part.isCustom ? [part.id] : [])),
    ),
  );
  return turns.flatMap((turn) =>
    turn.role === "assistant" ? encodeAssistant(turn, environment) : encodeOthers(turn, custom, environment),
  );
}

function encodeOthers(turn: Turn, custom: ReadonlySet<string>, environment: EncodeEnvironment): Item[] {
  const results = turn.parts.filter((part) => part.type === "tool_result");
  const rest = turn.parts.filter((part) => part.type !== "tool_result");
  const items: Item[] = results.map((part) => encodeResult(part, turn.path, custom, environment));
  if (rest.length > 0 || results.length === 0) {
    items.push({ type: "message", role: turn.role, content: encodeContent(rest, turn.path, environment) });
  }
  return items;
}

function encodeAssistant(turn: Turn, environment: EncodeEnvironment): Item[] {
  const items: Item[] = [];
  let open: Item[] | null = null;
  for (const [i, part] of turn.parts.entries()) {
    if (part.type === "text" || part.type === "refusal") {
      if (part.type === "text" && part.citations !== undefined) environment.losses.note("citations");
      if (part.type === "text" && part.cache !== undefined) {
        environment.losses.note(sourceField(environment.from, "cache"));
      }
      if (open === null) {
        open = [];
        items.push({ type: "message", role: "assistant", content: open });
      }
      open.push(
        part.type === "text"
          ? { type: "output_text", text: part.text, annotations: [] }
          : { type: "refusal", refusal: part.text },
      );
      continue;
    }
    open = null;
    if (part.type === "tool_call") items.push(encodeCall(part, environment));
    else if (part.type === "reasoning") {
      // Only the provider can read encrypted reasoning, and only its own.
      if (part.origin === "responses" && part.signature !== null) {
        items.push({
          type: "reasoning",
          ...(part.id === null ? {} : { id: part.id }),
          summary: part.text === "" ? [] : [{ type: "summary_text", text: part.text }],
          encrypted_content: part.signature,
        });
      } else environment.losses.note(`${turn.path}.reasoning`);
    } else environment.losses.refuse(`${turn.path}.content[${i}]`);
  }
  return items;
}

function encodeCall(part: ToolCallPart, { names, losses }: EncodeEnvironment): Item {
  if (part.signature !== undefined) losses.note("thought_signature");
  const name = names.name(part.name, part.namespace ?? null, false);
  return part.isCustom
    ? { type: "custom_tool_call", call_id: names.id(part.id), name, input: part.arguments }
    : { type: "function_call", call_id: names.id(part.id), name, arguments: part.arguments };
}

/** The kind of the output follows the kind of the call, which chat completions does not repeat on the result. */
function encodeResult(
  part: ToolResultPart,
  path: string,
  custom: ReadonlySet<string>,
  environment: EncodeEnvironment,
): Item {
  if (part.cache !== undefined) environment.losses.note(sourceField(environment.from, "cache"));
  const content = part.parts.flatMap((inner, i) => encodePart(inner, `${path}.content[${i}]`, environment));
  const [first] = content;
  const isText = content.every((inner) => inner["type"] === "input_text" && Object.keys(inner).length === 2);
  let output: unknown = content;
  if (first === undefined) output = "";
  else if (isText) output = content.map((inner) => inner["text"]).join("\n");
  if (part.isError) {
    output =
      typeof output === "string" ? `Error: ${output}` : [{ type: "input_text", text: "Error:" }, ...content];
  }
  return {
    type: part.isCustom || custom.has(part.callId) ? "custom_tool_call_output" : "function_call_output",
    call_id: environment.names.id(part.callId),
    output,
  };
}

function encodeContent(parts: readonly Part[], path: string, environment: EncodeEnvironment): unknown {
  const encoded = parts.flatMap((part, i) => encodePart(part, `${path}.content[${i}]`, environment));
  const [first] = encoded;
  if (first === undefined) return "";
  const isPlain = encoded.length === 1 && first["type"] === "input_text" && Object.keys(first).length === 2;
  return isPlain ? first["text"] : encoded;
}

function encodePart(part: Part, path: string, environment: EncodeEnvironment): Item[] {
  switch (part.type) {
    case "text":
      return [{ type: "input_text", text: part.text, ...mark(part, environment) }];
    case "image":
      if (part.source.kind === "file") return lose(path, environment);
      return [
        {
          type: "input_image",
          image_url: urlOfSource(part.source),
          detail: part.detail ?? "auto",
          ...mark(part, environment),
        },
      ];
    case "file": {
      const { source } = part;
      const filename = part.name === null ? {} : { filename: part.name };
      if (source.kind === "text") {
        const text = part.name === null ? source.text : `${part.name}:\n${source.text}`;
        return [{ type: "input_text", text, ...mark(part, environment) }];
      }
      if (source.kind === "file") return lose(path, environment);
      if (source.kind === "url") {
        return [{ type: "input_file", file_url: source.url, ...filename, ...mark(part, environment) }];
      }
      return [
        {
          type: "input_file",
          filename: part.name ?? "document.pdf",
          file_data: urlOfSource(source),
          ...mark(part, environment),
        },
      ];
    }
    case "audio":
      return [{ type: "input_audio", input_audio: { data: part.data, format: part.format } }];
    case "reasoning":
    case "tool_call":
    case "tool_result":
    case "refusal":
      return lose(path, environment);
  }
}

function lose(path: string, { losses }: EncodeEnvironment): Item[] {
  losses.refuse(path);
  return [];
}

function mark(part: PromptPart, { from, traits, losses }: EncodeEnvironment): Item {
  if (part.cache === undefined) return {};
  if (traits.takesCacheBreakpoints) return { prompt_cache_breakpoint: toCacheBreakpoint(part.cache) };
  losses.note(sourceField(from, "cache"));
  return {};
}
