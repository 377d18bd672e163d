/**
 * Where text stands in the JSON of any API: everywhere, except in the few members that are known to hold none. No dialect is asked, so an API or a
 * member that nobody knew when this was written is searched, too.
 *
 * - What callers and models name themselves (the input of a tool, its result, a schema) has none of the known members: there, everything is text.
 * - Names of members, identifiers and long numbers are searched one by one; all other strings as one text with soft breaks, because a person or a
 *   model reads them one after the other. Elements of a list of strings are texts of their own.
 * - Encoded content is decoded. If it is text, it is searched; if it is a picture, sound or a film, there is no text in it (`media`); if it is anything
 *   else, such as a document, nobody can say what it contains (`unread`).
 * - A data URL is one only if all of it is: people write texts that begin with `Data:`. What a reader that forgives could decode is searched as well.
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
import { SLICE, type Slices } from "./slices.ts";
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
/** How a data URL begins, and many a text. */
const DATA_START = /^\s*data:([^,]{0,4096}),/i;
/** A type with parameters (RFC 2397). */
const DATA_HEAD =
  /^(?:[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+)?(?:\s*;\s*[\w!#$&^.+*-]+(?:=(?:"[^"]*"|[^\s";]*))?)*\s*$/;
const DATA_BASE64 = /^(?:[A-Za-z0-9+/_-]{40,}\r?\n)*[A-Za-z0-9+/_-]*={0,2}\s*$/;
const ESCAPES = /(?:%[0-9a-f]{2})+/gi;
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
  // `head`: what stands before the content, and is searched like a text; empty if there is nothing.
  | { readonly kind: "decoded"; readonly head: string; readonly text: string }
  | { readonly kind: "media"; readonly head: string }
  | { readonly kind: "unread"; readonly head: string; readonly reason: string };

type ContentRole = Extract<TextRole, { readonly head: string }>;

const NO_TEXT = "it contains a file that is no text";
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
      ? { kind: "unread", head: "", reason: "the prompt is a list of tokens" }
      : ASIDE;
  }
  if (text === "") return SKIP;
  if (!isFree(at.level)) {
    // Providers write words of the protocol there; callers may write anything.
    if (WORDS.has(member) && text.length <= MAX_WORD) return place === "response" ? SKIP : ASIDE;
    if (OPAQUE.has(member)) return place === "response" || isOpaque(text) ? SKIP : ASIDE;
    if (IDENTIFIERS.has(member)) return place === "response" && text.length <= MAX_IDENTIFIER ? SKIP : ASIDE;
  }
  const url = dataUrlRole(text);
  if (url !== null) return url;
  if (isEncoded(member, text, event)) return decodedRole(at, event);
  if (member === "input" && at.level.name === "toolUse") return ARGUMENT;
  if (ARGUMENTS.has(member) || (member === "delta" && ARGUMENT_EVENT.test(event))) return ARGUMENT;
  return TEXT;
}

/** Whether a string of an answer is no text, whatever it is. */
export function isNoText({ kind, member, level }: JsonText): boolean {
  return kind === "value" && OPAQUE.has(member) && !isFree(level);
}

/** Whether a caller sends back what only a provider can have written. */
function isOpaque(text: string): boolean {
  return BASE64.test(text) && textOf(Buffer.from(text, "base64")) === null;
}

function isEncoded(member: string, text: string, event: string): boolean {
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
  const bytes = Buffer.from(at.text, "base64");
  const content = textOf(bytes);
  const isShort = at.text.length < MIN_FILE;
  if (content !== null)
    return { kind: "decoded", head: "", text: isShort ? `${at.text}\n${content}` : content };
  const isSample = event === SAMPLES_EVENT || SOUND_EVENT.test(event) || SAMPLES.test(pathOf(at));
  if (isSample || isMedia(bytes)) return { kind: "media", head: "" };
  return isShort ? TEXT : { kind: "unread", head: "", reason: NO_TEXT };
}

/** Null for what has nothing to decode: an ordinary text. */
function dataUrlRole(text: string): TextRole | null {
  const start = DATA_START.exec(text);
  if (start === null) return null;
  const [head, type = ""] = start;
  const payload = text.slice(head.length);
  const isBase64 = /;\s*base64\s*$/i.test(type);
  if (!isBase64 && !payload.includes("%")) return null;
  const isWhole =
    DATA_HEAD.test(type) && (isBase64 ? DATA_BASE64.test(payload) : !/\s/.test(payload.trimEnd()));
  const bytes = isBase64 ? Buffer.from(payload, "base64") : unescaped(payload);
  // Escapes may stand for any character, also in what is a text for the rest.
  const isText = isBase64 ? textOf(bytes) !== null : !isWhole || isUtf8(bytes);
  const content = isText ? bytes.toString("utf8") : null;
  if (content === payload) return null;
  // What is no whole data URL may be one for the provider, or be read as it is.
  if (content !== null) return { kind: "decoded", head: isWhole ? head : text, text: content };
  if (isWhole) return isMedia(bytes) ? { kind: "media", head } : { kind: "unread", head, reason: NO_TEXT };
  return /\s/.test(text.trim()) ? null : { kind: "unread", head: text, reason: NO_TEXT };
}

/** The bytes of a text with `%` escapes; a `%` that begins none stays. */
function unescaped(text: string): Buffer {
  const parts: Buffer[] = [];
  let copied = 0;
  for (const { 0: run, index } of text.matchAll(ESCAPES)) {
    parts.push(Buffer.from(text.slice(copied, index)), Buffer.from(run.replaceAll("%", ""), "hex"));
    copied = index + run.length;
  }
  parts.push(Buffer.from(text.slice(copied)));
  return Buffer.concat(parts);
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
  readonly #isSession: boolean;
  /** Each text for itself. */
  #single: TextChannel | null = null;
  /** What spans texts: a person or a model reads them one after the other. Null before the first of them; most events have none. */
  #joined: TextChannel | null = null;

  /** `isSession`: the documents are messages of a realtime session. */
  constructor(rules: PlaceRules, findings: Findings, place: GuardrailPlace, isSession = false) {
    this.#rules = rules;
    this.#findings = findings;
    this.#place = place;
    this.#isSession = isSession;
  }

  /** The document with masks; null if nothing changed. Throws `GuardrailBlock`. */
  *searchJson(json: string): Slices<string | null> {
    const texts = readJsonTexts(json);
    if (texts === null) {
      this.#findings.unread(this.#place, this.#rules, "it is not valid JSON");
      return null;
    }
    return yield* this.searchTexts(json, texts);
  }

  /** The same, of a document whose texts were read. */
  *searchTexts(json: string, texts: readonly JsonText[]): Slices<string | null> {
    const edited: { readonly at: JsonText; readonly piece: TextPiece }[] = [];
    // What a caller writes is no event, whatever it says, except for the one of a session that brings sound.
    const event = this.#isSession && typeOf(texts) === SAMPLES_EVENT ? SAMPLES_EVENT : "";
    let sliceEnd = SLICE;
    for (const at of texts) {
      if (at.start >= sliceEnd) {
        yield;
        sliceEnd = at.start + SLICE;
      }
      const role = roleOf(at, this.#place, event);
      switch (role.kind) {
        case "skip":
          break;
        case "media":
        case "unread":
        case "decoded":
          yield* this.searchContent(role);
          break;
        case "aside": {
          if (this.#rules.isClean(at.text)) break;
          const piece = new TextPiece(at.text);
          const isFound = isLong(piece) ? yield* this.searchLong(piece) : this.searchAlone(piece);
          if (isFound) edited.push({ at, piece });
          // What is only flagged, or is no mask of this call, is found again in the next one.
          else if (piece.found === null && (at.kind === "name" || WORDS.has(at.member)))
            this.#rules.noteClean(at.text);
          break;
        }
        case "text": {
          const piece = new TextPiece(at.text, { isJson: role.isJson });
          edited.push({ at, piece });
          if (isLong(piece)) yield* this.#addLong(piece, at.position >= 0);
          else this.#add(piece, at.position >= 0);
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

  /** Content that was decoded, or that cannot be searched. */
  *searchContent(role: ContentRole): Slices<void> {
    if (role.head !== "") yield* this.searchLong(new TextPiece(role.head, { isEditable: false }));
    if (role.kind === "media") this.#findings.media(this.#place, this.#rules);
    else if (role.kind === "unread") this.#findings.unread(this.#place, this.#rules, role.reason);
    else yield* this.searchLong(new TextPiece(role.text, { isEditable: false }));
  }

  /** A text that belongs to no other. Returns whether it has edits. */
  searchAlone(piece: TextPiece): boolean {
    const channel = new TextChannel(this.#rules, this.#findings, this.#place);
    channel.push(piece);
    channel.end();
    return piece.edits !== null;
  }

  /** The same of a text that may be long. */
  *searchLong(piece: TextPiece): Slices<boolean> {
    const channel = new TextChannel(this.#rules, this.#findings, this.#place);
    yield* channel.pushSlices(piece);
    channel.end();
    return piece.edits !== null;
  }

  #add(piece: TextPiece, isAlone: boolean): void {
    this.#searched.push(piece);
    const idle = this.#searched.idleIn(piece);
    this.#searched.end();
    if (!isAlone) this.#joinable().push(piece, idle);
  }

  *#addLong(piece: TextPiece, isAlone: boolean): Slices<void> {
    yield* this.#searched.pushSlices(piece);
    const idle = this.#searched.idleIn(piece);
    this.#searched.end();
    if (!isAlone) yield* this.#joinable().pushSlices(piece, idle);
  }

  get #searched(): TextChannel {
    return (this.#single ??= new TextChannel(this.#rules, this.#findings, this.#place));
  }

  /** For a text that follows another one. */
  #joinable(): TextChannel {
    if (this.#joined === null) this.#joined = new TextChannel(this.#rules, this.#findings, this.#place, true);
    else this.#joined.pause();
    return this.#joined;
  }

  end(): void {
    this.#joined?.end();
  }
}

function isLong({ text }: TextPiece): boolean {
  return text.length >= SLICE;
}
