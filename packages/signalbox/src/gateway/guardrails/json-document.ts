/**
 * Where text stands in the JSON of any API: everywhere, except in the few members that are known to hold none. No dialect is asked, so an API or a
 * member that nobody knew when this was written is searched, too.
 *
 * - What callers and models name themselves (the input of a tool, its result, a schema) has none of the known members: there, everything is text.
 * - Names of members, identifiers and long numbers are searched one by one; all other strings as one text with soft breaks, because a person or a
 *   model reads them one after the other. Elements of a list of strings are texts of their own.
 * - Encoded content is decoded. If it is text, it is searched; if it is a picture, sound or a film, there is no text in it (`media`); if it is anything
 *   else, such as a document, nobody can say what it contains (`unread`).
 */
import { isUtf8 } from "node:buffer";
import {
  editJson,
  type JsonLevel,
  type JsonText,
  pathOf,
  readJsonTexts,
} from "../../engines/text-scan/index.ts";
import type { Findings } from "./findings.ts";
import { isMedia } from "./media.ts";
import type { GuardrailPlace, PlaceRules } from "./rule-set.ts";
import { TextChannel, TextPiece } from "./text-channel.ts";

/** Words of the protocol. */
const WORDS: ReadonlySet<string> = new Set(["type", "role", "object", "model"]);
const MAX_WORD = 64;
/** What providers write for themselves, and read again. */
const OPAQUE: ReadonlySet<string> = new Set([
  "signature",
  "encrypted_content",
  "thoughtSignature",
  "thought_signature",
  "embedding",
  "obfuscation",
  "p",
]);
const IDENTIFIERS: ReadonlySet<string> = new Set([
  "id",
  "call_id",
  "tool_call_id",
  "tool_use_id",
  "toolUseId",
  "item_id",
  "response_id",
  "responseId",
  "event_id",
  "previous_response_id",
  "system_fingerprint",
  "name",
  "user",
  "status",
  "finish_reason",
  "finishReason",
  "stop_reason",
  "stopReason",
  "service_tier",
  "mimeType",
  "mime_type",
  "media_type",
  "modelVersion",
  "detail",
  "format",
]);
/** Of an answer these are words of the provider. */
const MAX_IDENTIFIER = 128;
const ENCODED: ReadonlySet<string> = new Set([
  "data",
  "bytes",
  "b64_json",
  "audio",
  "image",
  "video",
  "file_data",
  "partial_image_b64",
  "bytesBase64Encoded",
  "imageBytes",
  "videoBytes",
  "result",
]);
/** Members whose content is named by callers and models. */
const FREE: ReadonlySet<string> = new Set([
  "args",
  "arguments",
  "json",
  "metadata",
  "parameters",
  "properties",
  "structuredContent",
  "structured_content",
]);
const ARGUMENTS: ReadonlySet<string> = new Set(["arguments", "partial_json"]);
const DATA_URL = /^\s*data:([^,]{0,4096}),/i;
const BASE64 = /^(?:[A-Za-z0-9+/_-]{16,}|(?:[A-Za-z0-9+/_-]{40,}\r?\n)+[A-Za-z0-9+/_-]*)={0,2}\s*$/;
/** A shorter text that is no other text in base64 is what it looks like: a word, a number. */
const MIN_FILE = 64;
const SOUND_EVENT = /audio\.delta$/;
/** Samples without a head, in sessions: `input_audio_buffer.append`, Gemini's messages in both directions. */
const SAMPLES = /^(?:realtime_?[iI]nput\..*|serverContent\.modelTurn\.parts\.\d+\.inlineData\.)data$/;
const SAMPLES_EVENT = "input_audio_buffer.append";
const ARGUMENT_EVENT = /arguments\.delta$/;
const TOKENS = /^(?:input|prompt)\.\d+(?:\.\d+)?$/;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/;

type TextRole =
  | { readonly kind: "skip" }
  | { readonly kind: "text"; readonly isJson: boolean }
  | { readonly kind: "aside" }
  | { readonly kind: "decoded"; readonly text: string }
  | { readonly kind: "media" }
  | { readonly kind: "unread"; readonly reason: string };

const MEDIA: TextRole = { kind: "media" };
const SKIP: TextRole = { kind: "skip" };
const ASIDE: TextRole = { kind: "aside" };
const TEXT: TextRole = { kind: "text", isJson: false };
const ARGUMENT: TextRole = { kind: "text", isJson: true };

/** `event`: the type of the event that the document is; empty if it is none. */
export function roleOf(at: JsonText, place: GuardrailPlace, event: string): TextRole {
  const { kind, text, member } = at;
  if (kind === "name") return ASIDE;
  if (kind === "number") {
    return place === "prompt" && TOKENS.test(pathOf(at))
      ? { kind: "unread", reason: "the prompt is a list of tokens" }
      : ASIDE;
  }
  if (text === "") return SKIP;
  if (!isFree(at.level)) {
    // Providers write words of the protocol there; callers may write anything.
    if (WORDS.has(member) && text.length <= MAX_WORD) return place === "response" ? SKIP : ASIDE;
    if (OPAQUE.has(member)) return place === "response" || isOpaque(text) ? SKIP : ASIDE;
    if (IDENTIFIERS.has(member)) return place === "response" && text.length <= MAX_IDENTIFIER ? SKIP : ASIDE;
  }
  if (isEncoded(member, text, event)) return decodedRole(at, event);
  if (member === "input" && at.level.name === "toolUse") return ARGUMENT;
  if (ARGUMENTS.has(member) || (member === "delta" && ARGUMENT_EVENT.test(event))) return ARGUMENT;
  return TEXT;
}

/** Whether a caller sends back what only a provider can have written. */
function isOpaque(text: string): boolean {
  return BASE64.test(text) && textOf(Buffer.from(text, "base64")) === null;
}

function isEncoded(member: string, text: string, event: string): boolean {
  if (DATA_URL.test(text)) return true;
  if (member === "delta") return SOUND_EVENT.test(event);
  return ENCODED.has(member) && BASE64.test(text);
}

/** Whether a string is a word of the protocol or an identifier, and no text. */
export function isProtocolWord(member: string, text: string): boolean {
  return (WORDS.has(member) || IDENTIFIERS.has(member)) && text.length <= MAX_IDENTIFIER;
}

/** Whether callers and models name the members of a level, or of one above it. */
export function isFree(level: JsonLevel): boolean {
  for (let at: JsonLevel | null = level; at !== null && at.above !== null; at = at.above) {
    const { name, isList, above } = at;
    if (typeof name !== "string") continue;
    if (FREE.has(name)) return true;
    // `input` is a list of messages or the input of a tool, `response` an answer in an event or the result of a tool.
    if (name === "input" && !isList) return true;
    if (name === "response" && above.above?.above != null) return true;
  }
  return false;
}

function decodedRole(at: JsonText, event: string): TextRole {
  const content = decodeContent(at.text);
  const isShort = at.text.length < MIN_FILE && !DATA_URL.test(at.text);
  if (typeof content === "string")
    return { kind: "decoded", text: isShort ? `${at.text}\n${content}` : content };
  const isSample = event === SAMPLES_EVENT || SOUND_EVENT.test(event) || SAMPLES.test(pathOf(at));
  if (content !== null && (isSample || isMedia(content))) return MEDIA;
  return isShort ? TEXT : { kind: "unread", reason: "it contains a file that is no text" };
}

/** What a data URL or base64 contains: a text, or bytes that are none; null if it cannot be decoded. */
function decodeContent(text: string): string | Buffer | null {
  const head = DATA_URL.exec(text);
  const payload = head === null ? text : text.slice(head[0].length);
  if (head !== null && !/;\s*base64\s*$/i.test(head[1] ?? "")) {
    try {
      return decodeURIComponent(payload);
    } catch {
      return null;
    }
  }
  const bytes = Buffer.from(payload, "base64");
  return textOf(bytes) ?? bytes;
}

/** The bytes as text; null if they are none. */
export function textOf(bytes: Buffer): string | null {
  if (!isUtf8(bytes)) return null;
  const text = bytes.toString("utf8");
  return CONTROL.test(text) ? null : text;
}

/** What the document says that it is: the type of an event or of a message. */
export function typeOf(texts: readonly JsonText[]): string {
  const found = texts.find(
    ({ kind, member, level, position }) =>
      kind === "value" && member === "type" && position === -1 && level.above?.above === null,
  );
  return found?.text ?? "";
}

/** Searches the texts of one whole document. */
export class DocumentSearch {
  readonly #rules: PlaceRules;
  readonly #findings: Findings;
  readonly #place: GuardrailPlace;
  /** Each text for itself. */
  readonly #single: TextChannel;
  /** What spans texts: a person or a model reads them one after the other. */
  readonly #joined: TextChannel;
  #isBegun = false;

  constructor(rules: PlaceRules, findings: Findings, place: GuardrailPlace) {
    this.#rules = rules;
    this.#findings = findings;
    this.#place = place;
    this.#single = new TextChannel(rules, findings, place);
    this.#joined = new TextChannel(rules, findings, place, true);
  }

  /** The document with masks; null if nothing changed. Throws `GuardrailBlock`. */
  searchJson(json: string): string | null {
    const texts = readJsonTexts(json);
    if (texts === null) {
      this.#findings.unread(this.#place, this.#rules, "it is not valid JSON");
      return null;
    }
    const edited: { readonly at: JsonText; readonly piece: TextPiece }[] = [];
    // A document that a caller writes is no event, whatever it says, except for the one with sound.
    const event = typeOf(texts) === SAMPLES_EVENT ? SAMPLES_EVENT : "";
    for (const at of texts) {
      const role = roleOf(at, this.#place, event);
      switch (role.kind) {
        case "skip":
          break;
        case "media":
          this.#findings.media(this.#place, this.#rules);
          break;
        case "unread":
          this.#findings.unread(this.#place, this.#rules, role.reason);
          break;
        case "decoded":
          this.searchAlone(new TextPiece(role.text, { isEditable: false }));
          break;
        case "aside": {
          if (this.#rules.isClean(at.text)) break;
          const piece = new TextPiece(at.text);
          if (this.searchAlone(piece)) edited.push({ at, piece });
          // What is only flagged, or is no mask of this call, is found again in the next one.
          else if (piece.found === null && (at.kind === "name" || WORDS.has(at.member)))
            this.#rules.noteClean(at.text);
          break;
        }
        case "text": {
          const piece = new TextPiece(at.text, { isJson: role.isJson });
          edited.push({ at, piece });
          this.#add(piece, at.position >= 0);
        }
      }
    }
    this.end();
    const edits = edited.flatMap(({ at, piece }) => {
      const text = piece.edited();
      return text === null ? [] : [{ at, text }];
    });
    return edits.length === 0 ? null : editJson(json, edits);
  }

  /** A text that belongs to no other. Returns whether it has edits. */
  searchAlone(piece: TextPiece): boolean {
    const channel = new TextChannel(this.#rules, this.#findings, this.#place);
    channel.push(piece);
    channel.end();
    return piece.edits !== null;
  }

  #add(piece: TextPiece, isAlone: boolean): void {
    this.#single.push(piece);
    this.#single.end();
    if (isAlone) return;
    if (this.#isBegun) this.#joined.pause();
    this.#isBegun = true;
    this.#joined.push(piece);
  }

  end(): void {
    this.#joined.end();
  }
}
