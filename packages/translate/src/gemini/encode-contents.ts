/**
 * Turns into Gemini's contents.
 *
 * 1. Adjacent turns of one role become one content.
 * 2. A function response needs the name of its function, which other dialects leave to the call: it is looked up by id.
 * 3. A signature belongs to the part that follows the reasoning: dialects without a place for it on calls keep it as a
 *    reasoning block of its own before the call.
 * 4. Models from Gemini 3 on reject a call without a signature. The first call of a turn that has none (made by another
 *    provider, or by a client that dropped it) gets the documented placeholder.
 */
import { mediaTypeOfName } from "../data-uri.ts";
import { InvalidRequestError } from "../errors.ts";
import type { FilePart, ImagePart, MediaSource, Part, ToolResultPart } from "../neutral/part.ts";
import type { Turn } from "../neutral/request.ts";
import type { EncodeEnvironment } from "../request-codec.ts";
import { sourceField } from "../source-fields.ts";
import { parseArguments, wrapCustomInput } from "../tool-format.ts";
import { needsThoughtSignatures } from "../traits.ts";

type GeminiPart = Record<string, unknown>;

const NO_VALIDATION = "skip_thought_signature_validator";

export function encodeContents(turns: readonly Turn[], environment: EncodeEnvironment): GeminiPart[] {
  const callNames = new Map<string, string>();
  const contents: { role: string; parts: GeminiPart[] }[] = [];
  for (const turn of turns) {
    if (turn.role === "system") environment.losses.note(`${turn.path}.role`);
    const role = turn.role === "assistant" ? "model" : "user";
    const parts =
      role === "model" ? encodeModel(turn, callNames, environment) : encodeUser(turn, callNames, environment);
    if (parts.length === 0) continue;
    const last = contents.at(-1);
    if (last !== undefined && last.role === role) last.parts.push(...parts);
    else contents.push({ role, parts });
  }
  return contents;
}

function encodeModel(
  turn: Turn,
  callNames: Map<string, string>,
  environment: EncodeEnvironment,
): GeminiPart[] {
  const { names, losses, model } = environment;
  const parts: GeminiPart[] = [];
  let pending: string | null = null;
  let isCalled = false;
  const sign = (own: string | undefined, placeholder: boolean): GeminiPart => {
    const signature = own ?? pending ?? (placeholder ? NO_VALIDATION : null);
    pending = null;
    return signature === null ? {} : { thoughtSignature: signature };
  };
  for (const [i, part] of turn.parts.entries()) {
    switch (part.type) {
      case "reasoning":
        if (part.origin !== null && part.origin !== "gemini") {
          losses.note(`${turn.path}.reasoning`);
          break;
        }
        if (part.text !== "") parts.push({ text: part.text, thought: true });
        if (part.signature !== null) pending = part.signature;
        break;
      case "text":
      case "refusal": {
        const signature = part.type === "text" ? part.signature : undefined;
        if (part.text !== "" || signature !== undefined)
          parts.push({ text: part.text, ...sign(signature, false) });
        if (part.type === "text" && part.citations !== undefined) losses.note("citations");
        if (part.type === "text" && part.cache !== undefined)
          losses.note(sourceField(environment.from, "cache"));
        break;
      }
      case "tool_call": {
        const name = names.name(part.name, part.namespace ?? null, part.isCustom);
        callNames.set(part.id, name);
        const args = parseArguments(part.isCustom ? wrapCustomInput(part.arguments) : part.arguments);
        const placeholder = !isCalled && needsThoughtSignatures(model);
        parts.push({
          functionCall: { id: names.id(part.id), name, args },
          ...sign(part.signature, placeholder),
        });
        isCalled = true;
        break;
      }
      case "image":
      case "file":
      case "audio":
      case "tool_result":
        parts.push(...encodePrompt(part, `${turn.path}.content[${i}]`, environment));
    }
  }
  if (pending !== null) parts.push({ text: "", thoughtSignature: pending });
  return parts;
}

function encodeUser(
  turn: Turn,
  callNames: ReadonlyMap<string, string>,
  environment: EncodeEnvironment,
): GeminiPart[] {
  const results = turn.parts.filter((part) => part.type === "tool_result");
  const rest = turn.parts.filter((part) => part.type !== "tool_result");
  return [
    ...results.map((part) => encodeResult(part, turn.path, callNames, environment)),
    ...results.flatMap((part) =>
      part.parts.flatMap((inner, i) =>
        inner.type === "text" ? [] : encodePrompt(inner, `${turn.path}.content[${i}]`, environment),
      ),
    ),
    ...rest.flatMap((part, i) => encodePrompt(part, `${turn.path}.content[${i}]`, environment)),
  ];
}

function encodeResult(
  part: ToolResultPart,
  path: string,
  callNames: ReadonlyMap<string, string>,
  { from, names, losses }: EncodeEnvironment,
): GeminiPart {
  const name = callNames.get(part.callId);
  if (name === undefined) {
    throw new InvalidRequestError(
      path,
      `${path} is the result of a call that is not in the conversation: ${part.callId}`,
    );
  }
  if (part.cache !== undefined) losses.note(sourceField(from, "cache"));
  const text = part.parts.flatMap((inner) => (inner.type === "text" ? [inner.text] : [])).join("\n");
  return {
    functionResponse: {
      id: names.id(part.callId),
      name,
      response: part.isError ? { error: text } : { output: text },
    },
  };
}

function encodePrompt(part: Part, path: string, environment: EncodeEnvironment): GeminiPart[] {
  const { from, losses } = environment;
  if ("cache" in part && part.cache !== undefined) losses.note(sourceField(from, "cache"));
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ text: part.text }];
    case "image":
      if (part.detail !== undefined) losses.note("image_url.detail");
      return encodeMedia(part, "image/jpeg", path, environment);
    case "file":
      if (part.source.kind === "text") {
        return [{ text: part.name === null ? part.source.text : `${part.name}:\n${part.source.text}` }];
      }
      return encodeMedia(part, "application/pdf", path, environment);
    case "audio":
      return [
        {
          inlineData: {
            mimeType: part.format === "mp3" ? "audio/mpeg" : `audio/${part.format}`,
            data: part.data,
          },
        },
      ];
    case "reasoning":
    case "tool_call":
    case "tool_result":
    case "refusal":
      losses.refuse(path);
      return [];
  }
}

function encodeMedia(
  part: ImagePart | FilePart,
  fallback: string,
  path: string,
  { losses }: EncodeEnvironment,
): GeminiPart[] {
  const source = part.source as MediaSource;
  if (part.type === "file" && part.name !== null) losses.note("filename");
  if (source.kind === "file") {
    losses.refuse(path);
    return [];
  }
  if (source.kind === "base64") return [{ inlineData: { mimeType: source.mediaType, data: source.data } }];
  const mimeType = source.mediaType ?? mediaTypeOfName(source.url) ?? fallback;
  return [{ fileData: { fileUri: source.url, mimeType } }];
}
