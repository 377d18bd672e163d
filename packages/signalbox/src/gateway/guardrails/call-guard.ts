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
import { MaskedBodies } from "./masked-bodies.ts";
import { searchRequest, searchText } from "./request-body.ts";
import { guardResponse } from "./response-guard.ts";
import type { Judging } from "./judges.ts";
import { judgeResponse, type ResponseJudge } from "./judged-response.ts";
import { textOfAnswer, textOfRequest } from "./judged-text.ts";
import type { JudgingRule, RuleSet } from "./rule-set.ts";
import { inOnePiece, inTurns } from "./slices.ts";

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
  readonly #judging: Judging;
  /** Prompts that have their verdict. */
  readonly #judged = new Set<string>();
  #prompt = "";

  /** What is searched counts in `share`. */
  constructor(rules: RuleSet, share: CallShare, judging: Judging) {
    this.#rules = rules;
    this.#share = share;
    this.#judging = judging;
  }

  /** When the rules are compiled, and the steps may be searched. */
  async begin(steps: readonly Step[]): Promise<void> {
    await this.#rules.prepare();
    for (const step of steps) this.#reserve(step);
  }

  get fingerprint(): string {
    return this.#rules.fingerprint;
  }

  /** About the guardrails, for the head of any response of the call: name, value, … */
  get headers(): readonly string[] {
    const dlp = this.findings.dlpHeader;
    const mode = this.#holdsStreams ? "hold" : "window";
    return ["gw-aig-guardrails", mode, ...(dlp === null ? [] : ["gw-aig-dlp", dlp, "cf-aig-dlp", dlp])];
  }

  get action(): Finding["action"] | null {
    return this.findings.action;
  }

  get masksLog(): boolean {
    return this.#rules.log !== null;
  }

  /** Masks what is stored of the call; null if it is stored as it is. */
  get storedBodies(): MaskedBodies | null {
    return this.#rules.log === null ? null : new MaskedBodies(this.#rules.log, this.findings);
  }

  get #holdsStreams(): boolean {
    return this.#rules.at("response")?.judges.some(({ rule }) => rule.stream === "hold") === true;
  }

  /** A step that `begin` did not know. */
  async guardLate(step: Step): Promise<Step> {
    this.#reserve(step);
    const guarded = await this.guard(step);
    await this.judge([guarded]);
    return guarded;
  }

  /** Asks the judges about the prompts of guarded steps. Rejects with an error of the gateway. */
  async judge(steps: readonly Step[]): Promise<void> {
    if (!this.#rules.hasJudges) return;
    const rules = this.#rules.at("prompt")?.judges ?? [];
    const { judges, call } = this.#judging;
    for (const { upstream } of steps) {
      const text = textOfRequest(upstream.body, contentTypeOf(upstream.headers));
      this.#prompt = text;
      if (rules.length === 0 || this.#judged.has(text)) continue;
      try {
        await judges.judge(rules, this.findings, call, { place: "prompt", text, prompt: "" }, this.#signal);
      } catch (error) {
        throw error instanceof GuardrailBlock ? error.error : error;
      }
      this.#judged.add(text);
    }
  }

  /** Ends questions whose answer nobody waits for. */
  readonly #ended = new AbortController();
  get #signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** The caller has left. */
  end(): void {
    this.#ended.abort();
  }

  get hasEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  /** The step with masks, whose responses are searched. Rejects with an error of the gateway. */
  async guard(step: Step): Promise<Step> {
    const rules = this.#rules.at("prompt");
    let { upstream } = step;
    if (rules !== null) {
      const slices = searchRequest(rules, this.findings, upstream);
      try {
        upstream = await new Promise<typeof upstream>((resolve, reject) =>
          inTurns(slices, lengthOf(upstream.body), this.#share, resolve, reject),
        );
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
    if (rules === null) return send(handler);
    const judged = rules.judges.length === 0 ? send : this.#judgedBy(rules.judges, send);
    return guardResponse(rules, this.findings, this.#share, judged, handler);
  }

  #judgedBy(
    rules: readonly JudgingRule[],
    send: (handler: UpstreamHandler) => UpstreamExchange,
  ): (handler: UpstreamHandler) => UpstreamExchange {
    const { judges, call } = this.#judging;
    const prompt = this.#prompt;
    const judge: ResponseJudge = {
      judge: (text, signal) =>
        judges.judge(rules, this.findings, call, { place: "response", text, prompt }, signal),
      unjudged: (reason) => {
        for (const rule of rules) this.findings.unjudged("response", rule, reason);
      },
    };
    return (handler) => judgeResponse(judge, this.#holdsStreams, this.#share, send, handler);
  }

  #reserve({ upstream: { body }, requestType }: Step): void {
    if (!this.#rules.hasMasks) return;
    const text = body.kind === "whole" ? body.bytes.toString("utf8") : "";
    if (!KNOWN_WHOLE.has(requestType) || REFERENCE.test(text)) this.findings.numberApart();
    this.findings.reserve(text);
  }
}

/** Searches and judges an answer that was kept earlier, maybe under other rules. Rejects with an error of the gateway. */
export async function searchAnswer(
  set: RuleSet,
  json: string,
  { judges, call }: Judging,
  signal: AbortSignal,
): Promise<string> {
  const rules = set.at("response");
  if (rules === null) return json;
  const findings = new Findings();
  try {
    const searched = inOnePiece(searchText(rules, findings, json, true, "response")) ?? json;
    const question = { place: "response", text: textOfAnswer(Buffer.from(searched)), prompt: "" } as const;
    if (rules.judges.length > 0)
      await judges.judgeKept(set.fingerprint, rules.judges, findings, call, question, signal);
    return searched;
  } catch (error) {
    throw error instanceof GuardrailBlock ? error.error : error;
  }
}

function lengthOf(body: RequestBody): number {
  return body.kind === "whole" ? body.bytes.length : 0;
}

function contentTypeOf(headers: readonly string[]): string {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "content-type");
  return at === -1 ? "" : (headers[at + 1] ?? "");
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

  async next(): Promise<Step | null> {
    if (this.#refusal !== null) return null;
    const step = await this.#source.next();
    if (step === null) return null;
    try {
      return await this.#guard.guardLate(step);
    } catch (error) {
      this.#refusal =
        error instanceof SignalboxError ? error : new SignalboxError("internal", { cause: error });
      return null;
    }
  }
}
