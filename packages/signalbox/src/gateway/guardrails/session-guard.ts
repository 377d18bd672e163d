/**
 * The guardrails of a session: messages of the client are searched one by one, those of the provider as the events of a stream. The rules are those
 * of the moment: a session may last an hour.
 */
import { type Finding, Findings, GuardrailBlock } from "./findings.ts";
import { GuardedEvents, type ReleasedEvent } from "./guarded-events.ts";
import { textOf } from "./json-document.ts";
import { MaskedBodies } from "./masked-bodies.ts";
import { searchText } from "./request-body.ts";
import type { GuardrailPlace, LogRules, PlaceRules, RuleSet } from "./rule-set.ts";

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
  #events: GuardedEvents<SessionMessage> | null = null;
  #eventRules: PlaceRules | null = null;
  /** Messages have passed of which no mask is reserved. */
  #hasUnreserved = false;
  /** Of the latest rules that kept texts out of the log: it has all of the session, and rules may be gone at its end. */
  #log: LogRules | null = null;

  constructor(rulesNow: () => RuleSet | null) {
    this.#rulesNow = () => {
      const rules = rulesNow();
      this.#log = rules?.log ?? this.#log;
      return rules;
    };
  }

  /** Masks what is stored of the session; null if it is stored as it is. */
  get storedBodies(): MaskedBodies | null {
    return this.#log === null ? null : new MaskedBodies(this.#log, this.findings);
  }

  /** Whether messages have to be searched; they need not in the usual case. */
  get isOn(): boolean {
    return this.#events !== null || this.#rulesNow() !== null;
  }

  get action(): Finding["action"] | null {
    return this.findings.action;
  }

  /** What goes to the provider. Throws an error of the gateway. */
  fromClient(message: SessionMessage): SessionMessage {
    const set = this.#rulesNow();
    const rules = set?.at("prompt") ?? null;
    if (rules === null) return message;
    const hasMasks = set?.hasMasks === true;
    return refusing(() => {
      const text = this.#read(rules, "prompt", message);
      if (text === null) return message;
      this.#noteUnjudged(rules, "prompt");
      // A rule that masks may be added later: masks of the messages before must not be those of a text.
      if (RESUMPTION.test(text) || (hasMasks && this.#hasUnreserved)) this.findings.numberApart();
      if (hasMasks) this.findings.reserve(text);
      else this.#hasUnreserved = true;
      const edited = searchText(rules, this.findings, text, false, "prompt", true);
      return edited === null ? message : { ...message, data: Buffer.from(edited) };
    });
  }

  /** What goes to the client now, in order. Throws an error of the gateway. */
  fromProvider(message: SessionMessage): readonly SessionMessage[] {
    const rules = this.#rulesNow()?.at("response") ?? null;
    if (rules === null && this.#events === null) return [message];
    return refusing(() => {
      const before = rules === this.#eventRules ? [] : this.#change(rules);
      if (this.#events === null || rules === null) return [...before, message];
      const text = this.#read(rules, "response", message);
      if (text !== null) this.#noteUnjudged(rules, "response");
      return [...before, ...this.#events.push(message, text).map(toMessage)];
    });
  }

  /** What is held, when the provider has ended the session. */
  end(): readonly SessionMessage[] {
    return this.#events === null ? [] : refusing(() => this.#change(null));
  }

  #change(rules: PlaceRules | null): SessionMessage[] {
    const held = this.#events?.end().map(toMessage) ?? [];
    this.#events = rules === null ? null : new GuardedEvents(rules, this.findings, "response", 0);
    this.#eventRules = rules;
    return held;
  }

  /** Messages of a session do not wait for a judge: where one is asked, they are refused unless its rule lets them pass. */
  #noteUnjudged({ judges }: PlaceRules, place: GuardrailPlace): void {
    for (const one of judges) this.findings.unjudged(place, one, "messages of sessions are not judged");
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
    throw error instanceof GuardrailBlock ? error.error : error;
  }
}
