/**
 * Documents that follow each other, and continue texts of each other: the events of a stream, the messages of a session. They leave in the order in
 * which they arrived, each when all of its texts are judged.
 *
 * Which text an event continues is read from the path of the string and from the members that tell texts apart (`index`, `output_index`, …), in
 * whichever dialect. A text ends with an event that says so (`content_block_stop`, `response.output_text.done`, a reason to finish) and with the
 * stream. Another text that begins is no end: a model that calls a tool may go on with what it was saying.
 *
 * While a text is open, its last characters may be the beginning of a match. What follows them waits, but not for long: then these characters are
 * detached and wait alone. They leave with the next event of their text or, if it ends without one, in a copy of the event that brought them.
 *
 * Invariants:
 * 1. No character leaves before its verdict, whatever stands between it and the rest of its text.
 * 2. An event in which nothing is replaced, and from which nothing is detached, leaves as it came.
 * 3. At most `maxWaiting` characters and one event wait behind a text that they do not continue.
 * 4. Nothing that a model writes ends a text: only members at the places of the protocol do.
 */
import {
  editJson,
  type JsonLevel,
  type JsonText,
  MARKS,
  marksOf,
  pathOf,
  readJsonTexts,
} from "../../engines/text-scan/index.ts";
import type { Findings } from "./findings.ts";
import { EventTemplate } from "./event-template.ts";
import { DocumentSearch, isFree, isNoText, isProtocolWord, roleOf, typeOf } from "./json-document.ts";
import type { GuardrailPlace, PlaceRules } from "./rule-set.ts";
import { inOnePiece } from "./slices.ts";
import { TextChannel, TextPiece } from "./text-channel.ts";

interface HeldPiece {
  readonly at: JsonText | null;
  readonly piece: TextPiece;
  /** Null for a text that was judged when it came. */
  readonly open: OpenChannel | null;
}

interface HeldEvent<Frame> {
  readonly frame: Frame;
  readonly json: string;
  readonly pieces: readonly HeldPiece[];
  /** It is a copy, with this document. */
  readonly copy?: string;
}

/** An event that may leave; `json` is null if it leaves as it came. */
export interface ReleasedEvent<Frame> {
  readonly frame: Frame;
  readonly json: string | null;
}

/** The form of the last event that has one text, ends none, and has nothing else to search. */
interface UsualEvent {
  readonly template: EventTemplate;
  readonly event: string;
  /** Of the channel that the text continues. */
  readonly name: string;
  readonly marks: string;
  readonly isJson: boolean;
}

interface OpenChannel<Frame = unknown> {
  readonly channel: TextChannel;
  readonly marks: string;
  /** The event that brought the last characters. */
  last: { readonly frame: Frame; readonly json: string; readonly at: JsonText | null } | null;
  /** Characters of all events up to it. */
  seenAt: number;
}

/** A hostile provider could name any number of texts. */
const MAX_CHANNELS = 10_000;
/** Of a stream: some sixty events of a chat, which take about a second. */
const MAX_WAITING = 16 * 1024;
/** Words for "what is added", which differ from event to event of one text. */
const STEPS = /(?:^|\.)(?:delta|content_block|message|part)(?=\.)/g;
/** A number alone may be a piece of a text. */
const DOCUMENT = /^\s*[{[]/;
const FINISH_MEMBERS: ReadonlySet<string> = new Set([
  "finish_reason",
  "finishReason",
  "stop_reason",
  "stopReason",
]);
/** Where the reason for the end of a text stands. */
const FINISH_PATH = /^(?:(?:choices|candidates|generations|outputs|results)\.\d+\.)?[a-zA-Z_]+$/;
/** Some providers send one of these with every event. */
const NO_REASON = /^$|^null$|unspecified$/i;
const STOP_EVENT = /(?:_stop|\.done)$/;
/** Events that repeat whole texts. */
const WHOLE_EVENT =
  /(?:_stop|\.(?:done|completed|incomplete|failed|created|added|updated|in_progress|queued)|message_start)$/;
const END_EVENT = /(?:^message_stop|^response\.(?:done|completed|incomplete|failed))$/;
/** Members of Gemini's sessions with which a turn has ended. */
const TURN_ENDS: ReadonlySet<string> = new Set(["turnComplete", "generationComplete", "interrupted"]);
const IS_TRUE = /^\s*:\s*true\b/;
const BLOCK_EVENT = /^content_block_(?:start|delta)$/;

export class GuardedEvents<Frame> {
  readonly #rules: PlaceRules;
  readonly #findings: Findings;
  readonly #place: GuardrailPlace;
  readonly #maxWaiting: number;
  readonly #channels = new Map<string, OpenChannel<Frame>>();
  /** Texts that a reason to finish has ended. */
  readonly #finished = new Set<string>();
  /** A text went on behind its reason to finish: reasons of this provider end nothing. */
  #hasFalseFinish = false;
  #held: HeldEvent<Frame>[] = [];
  #usual: UsualEvent | null = null;
  /** Characters of all events so far. */
  #length = 0;

  /** `maxWaiting`: 0 for a session, in which the other side may wait for any message. */
  constructor(rules: PlaceRules, findings: Findings, place: GuardrailPlace, maxWaiting = MAX_WAITING) {
    this.#rules = rules;
    this.#findings = findings;
    this.#place = place;
    this.#maxWaiting = maxWaiting;
  }

  /** `json` is null for an event without a document. Throws `GuardrailBlock`. */
  push(frame: Frame, json: string | null): ReleasedEvent<Frame>[] {
    // An event without a document counts, too: it must not wait for long.
    this.#length += json?.length ?? 1;
    if (json === null) this.#held.push({ frame, json: "", pieces: [] });
    else this.#read(frame, json);
    return this.#release();
  }

  /** The last event has arrived. */
  end(): ReleasedEvent<Frame>[] {
    for (const [name, open] of this.#channels) this.#close(name, open);
    return this.#release();
  }

  /** An event was refused: what may pass of those before it. */
  flush(): ReleasedEvent<Frame>[] {
    for (const { pieces } of this.#held) for (const { open } of pieces) open?.channel.detach();
    return this.#release();
  }

  #read(frame: Frame, json: string): void {
    if (this.#readUsual(frame, json)) return;
    const texts = DOCUMENT.test(json) ? readJsonTexts(json) : null;
    if (texts === null) return this.#readPlain(frame, json);
    const event = typeOf(texts);
    const pieces: HeldPiece[] = [];
    const continued = new Set<OpenChannel<Frame>>();
    /** Places whose texts end. */
    const ends = new Set<string>();
    const search = new DocumentSearch(this.#rules, this.#findings, this.#place);
    /** Whether nothing but the one text has to be searched in another event of this form. */
    let isUsual = this.#place === "response";
    for (const at of texts) {
      if (!this.#hasFalseFinish && isFinish(at)) ends.add(marksOf(at.level));
      const role = roleOf(at, this.#place, event);
      if (role.kind === "media" || role.kind === "unread" || role.kind === "decoded") {
        isUsual = false;
        inOnePiece(search.searchContent(role));
      } else if (role.kind === "aside" || (role.kind === "text" && isFree(at.level))) {
        // No event continues what stands inside of a value.
        if (this.#rules.isClean(at.text)) continue;
        const piece = new TextPiece(at.text, { isJson: role.kind === "text" && role.isJson });
        if (search.searchAlone(piece)) pieces.push({ at, piece, open: null });
        else if (piece.found === null && at.kind === "name") this.#rules.noteClean(at.text);
        isUsual &&= piece.found === null;
      } else if (role.kind === "text") {
        const open = this.#channelOf(at, event);
        continued.add(open);
        pieces.push(this.#add(open, frame, json, at, new TextPiece(at.text, { isJson: role.isJson })));
      }
    }
    const endsNone = !this.#endTexts(texts, json, event, ends, continued);
    this.#held.push({ frame, json, pieces });
    this.#usual = isUsual && endsNone ? this.#usualOf(json, texts, event, pieces) : null;
  }

  #usualOf(
    json: string,
    texts: readonly JsonText[],
    event: string,
    pieces: readonly HeldPiece[],
  ): UsualEvent | null {
    const [piece, other] = pieces;
    const at = piece?.at ?? null;
    if (piece === undefined || other !== undefined || at === null) return null;
    if (at.kind !== "value" || at.member === "type" || MARKS.has(at.member) || FINISH_MEMBERS.has(at.member))
      return null;
    const template = new EventTemplate(json, texts, at, texts.filter(isNoText));
    return { template, event, ...channelOf(at, event), isJson: piece.piece.isJson };
  }

  /** An event with the form of the last one. False if it has another, or if its text is none. */
  #readUsual(frame: Frame, json: string): boolean {
    const usual = this.#usual;
    const at = usual?.template.read(json) ?? null;
    if (usual === null || at === null || roleOf(at, this.#place, usual.event).kind !== "text") return false;
    const open = this.#open(usual.name, usual.marks);
    const piece = this.#add(open, frame, json, at, new TextPiece(at.text, { isJson: usual.isJson }));
    this.#held.push({ frame, json, pieces: [piece] });
    return true;
  }

  #add(
    open: OpenChannel<Frame>,
    frame: Frame,
    json: string,
    at: JsonText | null,
    piece: TextPiece,
  ): HeldPiece {
    open.channel.push(piece);
    open.last = { frame, json, at };
    open.seenAt = this.#length;
    return { at, piece, open };
  }

  /** Ends the texts that the event ends. `finished`: places with a reason to finish. False for an event that ends none. */
  #endTexts(
    texts: readonly JsonText[],
    json: string,
    event: string,
    finished: ReadonlySet<string>,
    continued: ReadonlySet<OpenChannel<Frame>>,
  ): boolean {
    const marks = texts[0] === undefined ? "" : marksOf(texts[0].level);
    const endsAll = (END_EVENT.test(event) && marks === "") || endsTurn(texts, json);
    const stopped = STOP_EVENT.test(event) ? marks : null;
    const isWhole = WHOLE_EVENT.test(event);
    if (!endsAll && stopped === null && !isWhole && finished.size === 0) return false;
    for (const [name, open] of this.#channels) {
      const isFinished = [...finished].some((mark) => concerns(mark, open.marks));
      const isStopped = stopped !== null && concerns(stopped, open.marks);
      if (isFinished) this.#finished.add(name);
      if (isFinished || isStopped || endsAll || (isWhole && continued.has(open))) this.#close(name, open);
    }
    return true;
  }

  /** The text has ended, and no event continues it. */
  #close(name: string, open: OpenChannel<Frame>): void {
    this.#channels.delete(name);
    const rest = open.channel.end();
    const text = rest === null ? "" : (rest.edited() ?? rest.text);
    if (open.last === null || text === "") return;
    const { frame, json, at } = open.last;
    this.#held.push({ frame, json, pieces: [], copy: at === null ? text : copyWith(json, at, text) });
  }

  /** Not JSON: the whole is text, and continues what came before. */
  #readPlain(frame: Frame, text: string): void {
    // A reader that forgives mistakes would see the characters of escapes.
    if (DOCUMENT.test(text) && text.includes("\\u"))
      this.#findings.unread(this.#place, this.#rules, "it is not valid JSON");
    const open = this.#open("plain", "");
    this.#held.push({ frame, json: text, pieces: [this.#add(open, frame, text, null, new TextPiece(text))] });
  }

  #channelOf(at: JsonText, event: string): OpenChannel<Frame> {
    const { name, marks } = channelOf(at, event);
    return this.#open(name, marks);
  }

  #open(name: string, marks: string): OpenChannel<Frame> {
    let open = this.#channels.get(name);
    if (open === undefined) {
      if (this.#channels.size >= MAX_CHANNELS) {
        this.#findings.unread(this.#place, this.#rules, "it has too many texts at once");
        // Also where rules let pass what they cannot search: each text takes memory.
        throw new Error("it has too many texts at once");
      }
      if (this.#finished.has(name)) this.#hasFalseFinish = true;
      const channel = new TextChannel(this.#rules, this.#findings, this.#place);
      open = { channel, marks, last: null, seenAt: this.#length };
      this.#channels.set(name, open);
    }
    return open;
  }

  #release(): ReleasedEvent<Frame>[] {
    let count = 0;
    while (count < this.#held.length) {
      const waiting = this.#held[count]?.pieces.find(
        ({ open, piece }) => open !== null && !open.channel.isJudged(piece),
      );
      if (waiting === undefined) count += 1;
      else if (waiting.open !== null && this.#length - waiting.open.seenAt > this.#maxWaiting)
        waiting.open.channel.detach();
      else break;
    }
    return count === 0 ? [] : this.#held.splice(0, count).map((event) => released(event));
  }
}

function released<Frame>({ frame, json, pieces, copy }: HeldEvent<Frame>): ReleasedEvent<Frame> {
  if (copy !== undefined) return { frame, json: copy };
  const edits: { at: JsonText; text: string }[] = [];
  let plain: string | null = null;
  for (const { at, piece } of pieces) {
    const text = piece.edited();
    if (text === null) continue;
    if (at === null) plain = text;
    else edits.push({ at, text });
  }
  edits.sort((a, b) => a.at.start - b.at.start);
  return { frame, json: plain ?? (edits.length === 0 ? null : editJson(json, edits)) };
}

function channelOf(at: JsonText, event: string): { readonly name: string; readonly marks: string } {
  const marks = marksOf(at.level);
  const path = pathOf(at).replaceAll(STEPS, "");
  return { name: `${BLOCK_EVENT.test(event) ? "" : event} ${marks} ${path}`, marks };
}

function isFinish(at: JsonText): boolean {
  if (at.kind !== "value" || !FINISH_MEMBERS.has(at.member)) return false;
  return !NO_REASON.test(at.text) && FINISH_PATH.test(pathOf(at));
}

function endsTurn(texts: readonly JsonText[], json: string): boolean {
  return texts.some(
    ({ kind, text, level, end }) =>
      kind === "name" &&
      TURN_ENDS.has(text) &&
      level.name === "serverContent" &&
      level.above?.above?.above === null &&
      IS_TRUE.test(json.slice(end, end + 16)),
  );
}

/** The document with `text` as its only text: what stands on the way to it, and the words of the protocol beside that. */
function copyWith(json: string, at: JsonText, text: string): string {
  const way: (string | number)[] = [at.level.isList ? at.position : at.member];
  for (let level: JsonLevel | null = at.level; level?.above?.above != null; level = level.above)
    way.unshift(level.name);
  const copy = (value: unknown, depth: number): unknown => {
    if (depth === way.length) return text;
    const next = way[depth] ?? "";
    if (Array.isArray(value)) return [copy((value as unknown[])[Number(next)], depth + 1)];
    const members = Object.entries(value as object).flatMap(([name, member]): [string, unknown][] => {
      if (name === next) return [[name, copy(member, depth + 1)]];
      const isKept = typeof member === "string" ? isProtocolWord(name, member) : !isContainer(member);
      return isKept ? [[name, member]] : [];
    });
    return Object.fromEntries(members);
  };
  return JSON.stringify(copy(JSON.parse(json), 0));
}

function isContainer(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Whether two places are one as far as both are named: `index=0` and the part `content_index=1` of it. */
function concerns(a: string, b: string): boolean {
  const [own, other] = [a.split("/"), b.split("/")];
  let isSame = false;
  for (let i = 0; i < Math.min(own.length, other.length); i++) {
    const marks = new Map((own[i] ?? "").split(";").map((mark) => mark.split("=", 2) as [string, string]));
    for (const mark of (other[i] ?? "").split(";")) {
      const [name = "", value] = mark.split("=", 2);
      if (name === "" || !marks.has(name)) continue;
      if (marks.get(name) !== value) return false;
      isSame = true;
    }
  }
  return isSame;
}
