/**
 * Gemini's contents into turns. A call of this dialect may have no id; it then gets one from its place, and responses
 * without an id are matched with the calls of the turn before, by name and in order.
 *
 * A call has one response. Further ones with its id are left out: sessions that Gemini CLI resumes have each response
 * twice, which Gemini takes and other providers reject.
 */
import { InvalidRequestError } from "../errors.ts";
import {
  listOf,
  recordOf,
  requireList,
  requireName,
  requireRecord,
  requireText,
  textOrNull,
  type Json,
} from "../json.ts";
import type { Losses } from "../losses.ts";
import type { MediaSource, Part, TextPart } from "../neutral/part.ts";
import type { Turn } from "../neutral/request.ts";
import { unpackSignature } from "../signatures.ts";
import { pick } from "./spelling.ts";

/** What tools of the provider left in the history. The model's texts hold what came of it. */
const HOSTED_PARTS = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

interface OpenCall {
  readonly id: string;
  readonly name: string;
}

/** The calls of the last turn of the model. */
interface Calls {
  readonly open: OpenCall[];
  readonly answered: Set<string>;
}

export function decodeTexts(value: unknown, path: string): TextPart[] {
  if (typeof value === "string") return [{ type: "text", text: value }];
  const content = requireRecord(value, path);
  return listOf(content["parts"]).map((part, i) => ({
    type: "text",
    text: requireText(recordOf(part)["text"], `${path}.parts[${i}].text`),
  }));
}

export function decodeContents(contents: readonly unknown[], losses: Losses): Turn[] {
  let calls: Calls = { open: [], answered: new Set() };
  return contents.flatMap((value, i): Turn[] => {
    const path = `contents[${i}]`;
    const content = requireRecord(value, path);
    const role = content["role"] ?? "user";
    if (role !== "user" && role !== "model" && role !== "function") {
      throw new InvalidRequestError(`${path}.role`, `${path}.role must be user or model`);
    }
    if (role === "model") calls = { open: [], answered: new Set() };
    const given = requireList(content["parts"] ?? [], `${path}.parts`);
    const parts = given.flatMap((part, j) =>
      decodePart(
        requireRecord(part, `${path}.parts[${j}]`),
        `${path}.parts[${j}]`,
        `call_${i}_${j}`,
        calls,
        losses,
      ),
    );
    // A turn of which nothing is left is no turn.
    if (parts.length === 0 && given.length > 0) return [];
    return [{ role: role === "model" ? "assistant" : "user", parts, path }];
  });
}

function decodePart(part: Json, path: string, freeId: string, calls: Calls, losses: Losses): Part[] {
  const signature = textOrNull(pick(part, "thoughtSignature"));
  const signed = signature === null ? {} : { signature };
  if (typeof part["text"] === "string") {
    if (part["thought"] !== true) return [{ type: "text", text: part["text"], ...signed }];
    return [{ type: "reasoning", text: part["text"], ...unpackSignature(signature, "gemini") }];
  }
  const call = pick(part, "functionCall");
  if (call !== undefined) {
    const called = requireRecord(call, `${path}.functionCall`);
    const name = requireName(called["name"], `${path}.functionCall.name`);
    const id = textOrNull(called["id"]) ?? freeId;
    calls.open.push({ id, name });
    return [
      {
        type: "tool_call",
        id,
        name,
        arguments: JSON.stringify(recordOf(called["args"])),
        isCustom: false,
        ...signed,
      },
    ];
  }
  const response = pick(part, "functionResponse");
  if (response !== undefined)
    return decodeResponse(requireRecord(response, `${path}.functionResponse`), path, calls, losses);
  return decodeMedia(part, path, losses);
}

function decodeResponse(response: Json, path: string, { open, answered }: Calls, losses: Losses): Part[] {
  const name = requireName(response["name"], `${path}.functionResponse.name`);
  const given = textOrNull(response["id"]);
  const at = open.findIndex((call) => (given === null ? call.name === name : call.id === given));
  // Calls may share an id: those of clients that have none give an empty one.
  if (at < 0 && given !== null && answered.has(given)) {
    losses.note(`${path}.functionResponse`);
    return [];
  }
  const [call] = at < 0 ? [] : open.splice(at, 1);
  const id = given ?? call?.id;
  if (id === undefined) {
    throw new InvalidRequestError(
      `${path}.functionResponse`,
      `${path}.functionResponse has no call of ${name} before it`,
    );
  }
  answered.add(id);
  const result = recordOf(response["response"]);
  const keys = Object.keys(result);
  const only = keys.length === 1 ? keys[0] : undefined;
  const isPlain =
    (only === "output" || only === "error" || only === "result") && typeof result[only] === "string";
  return [
    {
      type: "tool_result",
      callId: id,
      parts: [{ type: "text", text: isPlain ? (result[only] as string) : JSON.stringify(result) }],
      isError: only === "error",
      isCustom: false,
    },
  ];
}

function decodeMedia(part: Json, path: string, losses: Losses): Part[] {
  const inline = pick(part, "inlineData");
  const file = pick(part, "fileData");
  if (inline === undefined && file === undefined) {
    const isTrace = HOSTED_PARTS.some((kind) => pick(part, kind) !== undefined);
    if (isTrace) losses.note(path);
    else losses.refuse(path, "the part has a kind that is not known");
    return [];
  }
  const holder = requireRecord(inline ?? file, path);
  const mediaType = textOrNull(pick(holder, "mimeType"));
  const name = textOrNull(pick(holder, "displayName"));
  const source: MediaSource =
    inline === undefined
      ? { kind: "url", url: requireName(pick(holder, "fileUri"), `${path}.fileData.fileUri`), mediaType }
      : {
          kind: "base64",
          mediaType: mediaType ?? "application/octet-stream",
          data: requireText(holder["data"], `${path}.inlineData.data`),
        };
  if (mediaType?.startsWith("image/") === true) return [{ type: "image", source }];
  if (mediaType?.startsWith("audio/") === true && source.kind === "base64") {
    const format = mediaType.slice("audio/".length);
    return [{ type: "audio", data: source.data, format: format === "mpeg" ? "mp3" : format }];
  }
  return [{ type: "file", source, name }];
}
