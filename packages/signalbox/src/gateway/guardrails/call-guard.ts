/**
 * The guardrails of one call. Every step is searched before it can be sent, and every response before anything else reads it; both through the
 * request and the handler of the exchange, so that no door, dialect or retry has a way around.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { RequestBody, UpstreamExchange, UpstreamHandler } from "../../engines/relay/index.ts";
import type { Step } from "../step/step.ts";
import type { StepSource } from "../step/step-source.ts";
import { type Finding, Findings, GuardrailBlock } from "./findings.ts";
import { searchRequest, searchText } from "./request-body.ts";
import { guardResponse } from "./response-guard.ts";
import type { RuleSet } from "./rule-set.ts";

export class CallGuard {
  readonly findings = new Findings();
  readonly #rules: RuleSet;

  constructor(rules: RuleSet) {
    this.#rules = rules;
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

  /** The step with masks, whose responses are searched. Throws an error of the gateway. */
  guard(step: Step): Step {
    const rules = this.#rules.at("prompt");
    let { upstream } = step;
    if (rules !== null) {
      this.#reserve(upstream.body);
      try {
        upstream = searchRequest(rules, this.findings, upstream);
      } catch (error) {
        throw error instanceof GuardrailBlock ? error.error : error;
      }
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
    return rules === null ? send(handler) : guardResponse(rules, this.findings, send, handler);
  }

  /** Searches an answer that was kept earlier, maybe under other rules. Throws an error of the gateway. */
  searchAnswer(json: string): string {
    const rules = this.#rules.at("response");
    try {
      return rules === null ? json : (searchText(rules, this.findings, json, true, "response") ?? json);
    } catch (error) {
      throw error instanceof GuardrailBlock ? error.error : error;
    }
  }

  #reserve(body: RequestBody): void {
    if (body.kind === "whole" && body.bytes.includes("<")) this.findings.reserve(body.bytes.toString("utf8"));
  }
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
      return this.#guard.guard(step);
    } catch (error) {
      if (!(error instanceof SignalboxError)) throw error;
      this.#refusal = error;
      return null;
    }
  }
}
