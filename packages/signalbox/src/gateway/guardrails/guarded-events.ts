/**
 * Documents that follow each other, and continue texts of each other: the events of a stream, the messages of a session. They leave in the order in
 * which they arrived, each when all of its texts are judged.
 *
 * Which text an event continues is read from the path of the string and from the members that tell texts apart (`index`, `output_index`, …), in
 * whichever dialect. An event for the same place without that string may be the end of the text: it is judged then as it is, and what was held
 * leaves. Should the text go on all the same, a match that began before is still found.
 *
 * Invariants:
 * 1. No event leaves before the verdict on its texts.
 * 2. An event in which nothing is replaced leaves as it came.
 */
import { editJson, type JsonText, marksOf, pathOf, readJsonTexts } from "../../engines/text-scan/index.ts";
import type { Findings } from "./findings.ts";
import { DocumentSearch, roleOf } from "./json-document.ts";
import type { GuardrailPlace, PlaceRules } from "./rule-set.ts";
import { TextChannel, TextPiece } from "./text-channel.ts";

interface HeldEvent<Frame> {
  readonly frame: Frame;
  readonly json: string;
  readonly pieces: readonly {
    readonly at: JsonText | null;
    readonly piece: TextPiece;
    readonly channel: TextChannel | null;
  }[];
}

/** An event that may leave; `json` is null if it leaves as it came. */
export interface ReleasedEvent<Frame> {
  readonly frame: Frame;
  readonly json: string | null;
}

interface OpenChannel {
  readonly channel: TextChannel;
  readonly marks: string;
}

/** A hostile provider could name any number of texts. */
const MAX_CHANNELS = 10_000;
/** Words for "what is added", which differ from event to event of one text. */
const STEPS = /(?:^|\.)(?:delta|content_block|message|part)(?=\.)/g;
/** A number alone may be a piece of a text. */
const DOCUMENT = /^\s*[{[]/;
/** Members that say that a text has ended. */
const STOPS: ReadonlySet<string> = new Set(["finish_reason", "finishReason", "stop_reason", "stopReason"]);
const STOP_EVENT = /(?:_stop|\.done)$/;
/** Events that repeat whole texts. */
const WHOLE_EVENT =
  /(?:_stop|\.(?:done|completed|incomplete|failed|created|added|updated|in_progress|queued)|message_start)$/;
const END_EVENT = /(?:^message_stop|^response\.(?:done|completed|incomplete|failed))$/;
/** Members of messages after which the other side waits for an answer. */
const PAUSES: ReadonlySet<string> = new Set([
  "turnComplete",
  "generationComplete",
  "interrupted",
  "toolCall",
]);
const BLOCK_EVENT = /^content_block_(?:start|delta)$/;

export class GuardedEvents<Frame> {
  readonly #rules: PlaceRules;
  readonly #findings: Findings;
  readonly #place: GuardrailPlace;
  readonly #channels = new Map<string, OpenChannel>();
  #held: HeldEvent<Frame>[] = [];

  constructor(rules: PlaceRules, findings: Findings, place: GuardrailPlace) {
    this.#rules = rules;
    this.#findings = findings;
    this.#place = place;
  }

  /** `json` is null for an event without a document. Throws `GuardrailBlock`. */
  push(frame: Frame, json: string | null): ReleasedEvent<Frame>[] {
    if (json === null) this.#held.push({ frame, json: "", pieces: [] });
    else this.#read(frame, json);
    return this.#release();
  }

  /** The last event has arrived. */
  end(): ReleasedEvent<Frame>[] {
    for (const { channel } of this.#channels.values()) channel.end();
    this.#channels.clear();
    return this.#release();
  }

  #read(frame: Frame, json: string): void {
    const texts = DOCUMENT.test(json) ? readJsonTexts(json) : null;
    if (texts === null) return this.#readPlain(frame, json);
    const event = typeOf(texts);
    const pieces: { at: JsonText | null; piece: TextPiece; channel: TextChannel | null }[] = [];
    const continued = new Set<OpenChannel>();
    /** Places at which this event has a text, or ends one. */
    const marks = new Set<string>();
    const search = new DocumentSearch(this.#rules, this.#findings, this.#place);
    for (const at of texts) {
      if (STOPS.has(at.member) && at.kind === "value") marks.add(marksOf(at.level));
      const role = roleOf(at, this.#place, event);
      if (role.kind === "unread") this.#findings.unread(this.#place, this.#rules.strict, role.reason);
      else if (role.kind === "decoded") search.searchAlone(new TextPiece(role.text, { isEditable: false }));
      else if (role.kind === "aside") {
        if (this.#rules.isClean(at.text)) continue;
        const piece = new TextPiece(at.text);
        if (search.searchAlone(piece)) pieces.push({ at, piece, channel: null });
        else if (at.kind === "name") this.#rules.noteClean(at.text);
      } else if (role.kind === "text" || (role.kind === "skip" && at.text === "" && at.kind === "value")) {
        const open = this.#channelOf(at, event);
        continued.add(open);
        if (role.kind === "skip") continue;
        marks.add(open.marks);
        const piece = new TextPiece(at.text, { isJson: role.isJson });
        open.channel.push(piece);
        pieces.push({ at, piece, channel: open.channel });
      }
    }
    const [first] = texts;
    const isStop = STOP_EVENT.test(event);
    if (isStop && first !== undefined) marks.add(marksOf(first.level));
    // An event that ends more than one text, or one after which the other side waits.
    const endsAll = END_EVENT.test(event) && first !== undefined && marksOf(first.level) === "";
    const isPause = endsAll || texts.some(({ kind, text }) => kind === "name" && PAUSES.has(text));
    for (const [name, open] of this.#channels) {
      if (continued.has(open)) {
        if (WHOLE_EVENT.test(event)) this.#close(name, open);
      } else if (isPause || [...marks].some((mark) => concerns(mark, open.marks))) {
        if (isStop) this.#close(name, open);
        else open.channel.settle();
      }
    }
    this.#held.push({ frame, json, pieces });
  }

  /** The text has ended, and no event continues it. */
  #close(name: string, { channel }: OpenChannel): void {
    channel.end();
    this.#channels.delete(name);
  }

  /** Not JSON: the whole is text, and continues what came before. */
  #readPlain(frame: Frame, text: string): void {
    const open = this.#open("plain", "");
    const piece = new TextPiece(text);
    open.channel.push(piece);
    this.#held.push({ frame, json: text, pieces: [{ at: null, piece, channel: open.channel }] });
  }

  #channelOf(at: JsonText, event: string): OpenChannel {
    const marks = marksOf(at.level);
    const path = pathOf(at).replaceAll(STEPS, "");
    return this.#open(`${BLOCK_EVENT.test(event) ? "" : event} ${marks} ${path}`, marks);
  }

  #open(name: string, marks: string): OpenChannel {
    let open = this.#channels.get(name);
    if (open === undefined) {
      if (this.#channels.size >= MAX_CHANNELS)
        this.#findings.unread(this.#place, this.#rules.strict, "it has too many texts at once");
      open = { channel: new TextChannel(this.#rules, this.#findings, this.#place), marks };
      this.#channels.set(name, open);
    }
    return open;
  }

  #release(): ReleasedEvent<Frame>[] {
    let count = 0;
    for (const { pieces } of this.#held) {
      if (!pieces.every(({ piece, channel }) => channel === null || channel.isJudged(piece))) break;
      count += 1;
    }
    if (count === 0) return [];
    const released = this.#held.splice(0, count);
    return released.map(({ frame, json, pieces }) => {
      const edits: { at: JsonText; text: string }[] = [];
      let plain: string | null = null;
      for (const { at, piece } of pieces) {
        piece.hasLeft = true;
        const text = piece.edited();
        if (text === null) continue;
        if (at === null) plain = text;
        else edits.push({ at, text });
      }
      edits.sort((a, b) => a.at.start - b.at.start);
      return { frame, json: plain ?? (edits.length === 0 ? null : editJson(json, edits)) };
    });
  }
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

function typeOf(texts: readonly JsonText[]): string {
  const found = texts.find(
    ({ kind, member, level, position }) =>
      kind === "value" && member === "type" && position === -1 && level.above?.above === null,
  );
  return found?.text ?? "";
}
