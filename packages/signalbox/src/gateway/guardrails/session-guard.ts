/**
 * The guardrails of a session: messages of the client are searched one by one, those of the provider as the events of a stream. The rules are those
 * of the moment: a session may last an hour.
 */
import { type Finding, Findings, GuardrailBlock } from "./findings.ts";
import { GuardedEvents, type ReleasedEvent } from "./guarded-events.ts";
import { textOf } from "./json-document.ts";
import { MaskedBodies } from "./masked-bodies.ts";
import type { Judging } from "./judges.ts";
import { searchText } from "./request-body.ts";
import type { GuardrailPlace, JudgingRule, LogRules, PlaceRules, RuleSet } from "./rule-set.ts";
import { SessionJudge } from "./session-judge.ts";
import { inOnePiece } from "./slices.ts";

const NO_JUDGES: readonly JudgingRule[] = [];

/** Gemini goes on with an earlier session, which had masks of its own. The message is the first one. */
const RESUMPTION = /"session_?[rR]esumption"\s*:\s*\{\s*"/;

export interface SessionMessage {
  readonly data: Buffer;
  readonly isBinary: boolean;
  /** Whether the transcript has it; stays with the message while it is held. */
  readonly isKept?: boolean;
}

export class SessionGuard {
  readonly findings = new Findings();
  readonly #rulesNow: () => RuleSet | null;
  readonly #judge: SessionJudge<SessionMessage>;
  #events: GuardedEvents<SessionMessage> | null = null;
  #eventRules: PlaceRules | null = null;
  /** Messages have passed of which no mask is reserved. */
  #hasUnreserved = false;
  /** Of the latest rules that kept texts out of the log: it has all of the session, and rules may be gone at its end. */
  #log: LogRules | null = null;

  constructor(rulesNow: () => RuleSet | null, { judges, call }: Judging) {
    this.#rulesNow = () => {
      const rules = rulesNow();
      this.#log = rules?.log ?? this.#log;
      return rules;
    };
    this.#judge = new SessionJudge(judges, call, this.findings);
  }

  /** Masks what is stored of the session; null if it is stored as it is. */
  get storedBodies(): MaskedBodies | null {
    return this.#log === null ? null : new MaskedBodies(this.#log, this.findings);
  }

  /** Whether messages have to be searched; they need not in the usual case. */
  get isOn(): boolean {
    return this.#events !== null || this.#judge.isHolding || this.#rulesNow() !== null;
  }

  get action(): Finding["action"] | null {
    return this.findings.action;
  }

  /** Bytes of messages that wait for a verdict. */
  get heldBytes(): number {
    return this.#judge.heldBytes;
  }

  /** The session has ended: nobody waits for a verdict. */
  close(): void {
    this.#judge.end();
  }

  /** What goes to the provider; a promise if a judge is asked. Throws, or rejects with, an error of the gateway. */
  fromClient(message: SessionMessage): SessionMessage | Promise<SessionMessage> {
    const set = this.#rulesNow();
    const rules = set?.at("prompt") ?? null;
    const sent = rules === null ? message : this.#searchClient(rules, set?.hasMasks === true, message);
    if (set?.hasJudges !== true) return sent;
    const verdict = this.#judge.judgePrompt(rules?.judges ?? [], sent);
    return verdict === null ? sent : verdict.then(() => sent, refuse);
  }

  #searchClient(rules: PlaceRules, hasMasks: boolean, message: SessionMessage): SessionMessage {
    return refusing(() => {
      const text = this.#read(rules, "prompt", message);
      if (text === null) return message;
      // A rule that masks may be added later: masks of the messages before must not be those of a text.
      if (RESUMPTION.test(text) || (hasMasks && this.#hasUnreserved)) this.findings.numberApart();
      if (hasMasks) this.findings.reserve(text);
      else this.#hasUnreserved = true;
      const edited = inOnePiece(searchText(rules, this.findings, text, false, "prompt", true));
      return edited === null ? message : { ...message, data: Buffer.from(edited) };
    });
  }

  /** What goes to the client now, in order; a promise if a judge is asked. Throws, or rejects with, an error of the gateway. */
  fromProvider(message: SessionMessage): readonly SessionMessage[] | Promise<readonly SessionMessage[]> {
    const judges = this.#rulesNow()?.at("response")?.judges ?? NO_JUDGES;
    if (judges.length === 0 && !this.#judge.isHolding) return refusing(() => this.#search(message));
    if (!this.#judge.hold(judges, message)) return [];
    return this.#release(judges);
  }

  /** What is held, when the provider has ended the session. */
  end(): readonly SessionMessage[] | Promise<readonly SessionMessage[]> {
    const rest = () => (this.#events === null ? [] : refusing(() => this.#change(null)));
    if (!this.#judge.isHolding) return rest();
    const judges = this.#rulesNow()?.at("response")?.judges ?? NO_JUDGES;
    return this.#release(judges).then((messages) => [...messages, ...rest()]);
  }

  /** Judges read what the provider wrote, before masks are put back. */
  #release(judges: readonly JudgingRule[]): Promise<readonly SessionMessage[]> {
    return this.#judge
      .release(judges)
      .then((messages) => messages.flatMap((one) => this.#search(one)))
      .catch(refuse);
  }

  /** Throws `GuardrailBlock`. */
  #search(message: SessionMessage): readonly SessionMessage[] {
    const rules = this.#rulesNow()?.at("response") ?? null;
    const before = rules === this.#eventRules ? [] : this.#change(rules);
    if (this.#events === null || rules === null) return [...before, message];
    const text = this.#read(rules, "response", message);
    return [...before, ...this.#events.push(message, text).map(toMessage)];
  }

  #change(rules: PlaceRules | null): SessionMessage[] {
    const held = this.#events?.end().map(toMessage) ?? [];
    this.#events = rules === null ? null : new GuardedEvents(rules, this.findings, "response", 0);
    this.#eventRules = rules;
    return held;
  }

  /** Null for a binary message that is no text: sound. */
  #read(rules: PlaceRules, place: GuardrailPlace, { data, isBinary }: SessionMessage): string | null {
    const text = textOf(data);
    if (text !== null) return text;
    if (isBinary) this.findings.media(place, rules);
    else this.findings.unread(place, rules, "it is no text");
    return null;
  }
}

function toMessage({ frame, json }: ReleasedEvent<SessionMessage>): SessionMessage {
  return json === null ? frame : { ...frame, data: Buffer.from(json) };
}

function refusing<Result>(search: () => Result): Result {
  try {
    return search();
  } catch (error) {
    return refuse(error);
  }
}

function refuse(error: unknown): never {
  throw error instanceof GuardrailBlock ? error.error : error;
}
