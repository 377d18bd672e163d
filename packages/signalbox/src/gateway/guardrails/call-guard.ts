/**
 * The guardrails of one call. Every step is searched before it can be sent, and every response before anything else reads it; both through the
 * request and the handler of the exchange, so that no door, dialect or retry has a way around.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { RequestBody, UpstreamExchange, UpstreamHandler } from "../../engines/relay/index.ts";
import { overloaded } from "../../core/overload.ts";
import type { CallShare } from "../step/call-share.ts";
import type { RequestType, Step } from "../step/step.ts";
import type { StepSource } from "../step/step-source.ts";
import { type Finding, Findings, GuardrailBlock, REFERENCE } from "./findings.ts";
import { searchRequest, searchText } from "./request-body.ts";
import { guardResponse } from "./response-guard.ts";
import type { RuleSet } from "./rule-set.ts";

/** Calls whose requests have all that the model sees, unless they refer to something earlier. */
const KNOWN_WHOLE: ReadonlySet<RequestType> = new Set([
  "chat",
  "completions",
  "responses",
  "messages",
  "embeddings",
  "generate_content",
  "moderations",
]);

export class CallGuard {
  readonly findings = new Findings();
  readonly #rules: RuleSet;
  readonly #share: CallShare;

  /** What is searched counts in `share`. */
  constructor(rules: RuleSet, share: CallShare) {
    this.#rules = rules;
    this.#share = share;
  }

  /** When the rules are compiled, and the steps may be searched. */
  async begin(steps: readonly Step[]): Promise<void> {
    await this.#rules.prepare();
    for (const step of steps) this.#reserve(step);
    const length = steps.reduce((sum, { upstream }) => sum + lengthOf(upstream.body), 0);
    await new Promise<void>((resolve) => this.#share.beginWork(length, resolve));
  }

  get fingerprint(): string {
    return this.#rules.fingerprint;
  }

  /** About the guardrails, for the head of any response of the call: name, value, … */
  get headers(): readonly string[] {
    const dlp = this.findings.dlpHeader;
    return ["gw-aig-guardrails", "window", ...(dlp === null ? [] : ["gw-aig-dlp", dlp, "cf-aig-dlp", dlp])];
  }

  get action(): Finding["action"] | null {
    return this.findings.action;
  }

  /** A step that `begin` did not know. */
  guardLate(step: Step): Step {
    this.#reserve(step);
    return this.guard(step);
  }

  /** The step with masks, whose responses are searched. Throws an error of the gateway. */
  guard(step: Step): Step {
    const rules = this.#rules.at("prompt");
    let { upstream } = step;
    if (rules !== null) {
      try {
        upstream = searchRequest(rules, this.findings, upstream);
      } catch (error) {
        throw error instanceof GuardrailBlock ? error.error : error;
      }
      // The request as it came stays in memory beside the one with masks.
      if (upstream !== step.upstream && !this.#share.holdMemory(lengthOf(upstream.body))) throw overloaded();
    }
    const unmasked = upstream === step.upstream ? {} : { unmasked: step.upstream.body };
    return { ...step, upstream, ...unmasked, guard: this };
  }

  /** The steps of a route, as they are determined. */
  guardSource(source: StepSource): StepSource {
    return new GuardedSource(source, this);
  }

  /** Sends a request, and passes the searched response on. */
  exchange(send: (handler: UpstreamHandler) => UpstreamExchange, handler: UpstreamHandler): UpstreamExchange {
    const rules = this.#rules.at("response");
    return rules === null ? send(handler) : guardResponse(rules, this.findings, this.#share, send, handler);
  }

  #reserve({ upstream: { body }, requestType }: Step): void {
    if (!this.#rules.hasMasks) return;
    const text = body.kind === "whole" ? body.bytes.toString("utf8") : "";
    if (!KNOWN_WHOLE.has(requestType) || REFERENCE.test(text)) this.findings.numberApart();
    this.findings.reserve(text);
  }
}

/** Searches an answer that was kept earlier, maybe under other rules. Throws an error of the gateway. */
export function searchAnswer(set: RuleSet, json: string): string {
  const rules = set.at("response");
  try {
    return rules === null ? json : (searchText(rules, new Findings(), json, true, "response") ?? json);
  } catch (error) {
    throw error instanceof GuardrailBlock ? error.error : error;
  }
}

function lengthOf(body: RequestBody): number {
  return body.kind === "whole" ? body.bytes.length : 0;
}

class GuardedSource implements StepSource {
  readonly #source: StepSource;
  readonly #guard: CallGuard;
  #refusal: SignalboxError | null = null;

  constructor(source: StepSource, guard: CallGuard) {
    this.#source = source;
    this.#guard = guard;
  }

  get mayHaveNext(): boolean {
    return this.#refusal === null && this.#source.mayHaveNext;
  }

  get refusal(): SignalboxError | null {
    return this.#refusal ?? this.#source.refusal;
  }

  next(): Step | null | Promise<Step | null> {
    if (this.#refusal !== null) return null;
    const step = this.#source.next();
    return step instanceof Promise ? step.then((late) => this.#guarded(late)) : this.#guarded(step);
  }

  #guarded(step: Step | null): Step | null {
    if (step === null) return null;
    try {
      return this.#guard.guardLate(step);
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      this.#refusal = error;
      return null;
    }
  }
}
