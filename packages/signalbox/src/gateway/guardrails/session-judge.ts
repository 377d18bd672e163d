/**
 * The judges of a session. A message of the client waits for its verdict. Messages of the provider wait until there is a piece of text to ask about:
 * some sentences, the end of a part of the answer, or with `stream: hold` the end of the answer. Sound is not judged, and leaves behind the text that
 * arrived before it.
 *
 * Invariants:
 * 1. No message leaves before the verdict on its text, and on all text before it.
 * 2. What waits is bounded: a piece is due when its messages have so many bytes. A message that adds nothing to a text makes it due, too, unless the
 *    whole answer is held.
 */
import { isFields } from "../../core/fields.ts";
import type { Findings } from "./findings.ts";
import { textOf } from "./json-document.ts";
import { CONTEXT, isPieceDue } from "./judged-response.ts";
import { JudgedText } from "./judged-text.ts";
import type { JudgedCall, Judges } from "./judges.ts";
import type { JudgingRule } from "./rule-set.ts";

/** What a message does with the answer: adds to a text, ends all of it, or neither. */
type Move = "adds" | "ends" | "other";

const MAX_WAITING_BYTES = 1024 * 1024;
/** Of an answer, to know the messages that repeat it. */
const MAX_SAID = 128 * 1024;
const END_EVENT = /^response\.(?:done|completed|incomplete|failed|cancelled)$/;
const TURN_ENDS = ["turnComplete", "generationComplete", "interrupted"];

export interface JudgedMessage {
  readonly data: Buffer;
}

export class SessionJudge<Message extends JudgedMessage> {
  /** Bytes of the messages that wait. */
  heldBytes = 0;
  readonly #judges: Judges;
  readonly #call: JudgedCall;
  readonly #findings: Findings;
  readonly #ended = new AbortController();
  #waiting: Message[] = [];
  /** The text of the messages that wait. */
  #text = new JudgedText("response");
  /** The end of what was judged before it. */
  #context = "";
  /** What the part of the answer has said so far, piece by piece; and whether a message has repeated it. */
  #said = "";
  #isPartOver = false;
  /** What the client has written last. */
  #prompt = "";

  constructor(judges: Judges, call: JudgedCall, findings: Findings) {
    this.#judges = judges;
    this.#call = call;
    this.#findings = findings;
  }

  get isHolding(): boolean {
    return this.#waiting.length > 0;
  }

  /** Ends questions whose answer nobody waits for. */
  end(): void {
    this.#ended.abort();
    this.#waiting = [];
    this.heldBytes = 0;
  }

  /** Null for a message without a text to ask about. Rejects with `GuardrailBlock`. */
  judgePrompt(rules: readonly JudgingRule[], message: Message): Promise<void> | null {
    const text = readTexts("prompt", textOf(message.data));
    if (text.trim() === "") return null;
    this.#prompt = text;
    if (rules.length === 0) return null;
    const question = { place: "prompt", text, prompt: "" } as const;
    return this.#judges.judge(rules, this.#findings, this.#call, question, this.#ended.signal);
  }

  /** Takes a message of the provider. Returns whether the verdict on what waits is due. */
  hold(rules: readonly JudgingRule[], message: Message): boolean {
    this.#waiting.push(message);
    this.heldBytes += message.data.length;
    const json = textOf(message.data);
    const move = moveOf(json);
    const text = readTexts("response", json);
    // The messages at the end of a part of the answer have its text again.
    const isRepeated = move !== "adds" && text === this.#said;
    if (json !== null && text !== "" && !isRepeated) this.#text.add(json);
    if (move === "adds" && text !== "") {
      this.#said = (this.#isPartOver ? text : this.#said + text).slice(-MAX_SAID);
      this.#isPartOver = false;
    } else if (isRepeated) this.#isPartOver = true;
    if (rules.length === 0 || this.#text.text === "" || move === "ends") return true;
    if (this.heldBytes >= MAX_WAITING_BYTES) return true;
    if (rules.some(({ rule }) => rule.stream === "hold")) return false;
    return move === "other" || isPieceDue(this.#text.text);
  }

  /** What waits, when it has its verdict. Rejects with `GuardrailBlock`. */
  async release(rules: readonly JudgingRule[]): Promise<readonly Message[]> {
    const messages = this.#waiting;
    const text = this.#text.take();
    this.#waiting = [];
    if (text.trim() !== "" && rules.length > 0) {
      const asked = this.#context + text;
      this.#context = asked.slice(-CONTEXT);
      const question = { place: "response", text: asked, prompt: this.#prompt } as const;
      await this.#judges.judge(rules, this.#findings, this.#call, question, this.#ended.signal);
    }
    this.heldBytes = 0;
    return messages;
  }
}

function readTexts(place: "prompt" | "response", json: string | null): string {
  const read = new JudgedText(place);
  if (json !== null) read.add(json);
  return read.text;
}

/** OpenAI's events say it in their type; of Gemini's messages only `serverContent` is a part of an answer. */
function moveOf(json: string | null): Move {
  // Sound in binary frames stands between the pieces of a text.
  if (json === null) return "adds";
  let fields: unknown = null;
  try {
    fields = JSON.parse(json);
  } catch {
    // A text that is no JSON is asked about by itself.
  }
  if (!isFields(fields)) return "other";
  const { type } = fields;
  if (typeof type === "string")
    return type.endsWith(".delta") ? "adds" : END_EVENT.test(type) ? "ends" : "other";
  const content = fields["serverContent"];
  return isFields(content) && !TURN_ENDS.some((name) => content[name] === true) ? "adds" : "ends";
}
