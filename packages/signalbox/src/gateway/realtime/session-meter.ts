/**
 * Reads the messages of a session: refuses those that the token or a limit forbids, and counts what the provider reports.
 *
 * States of a response:  asked ──► begun ──► ended
 *   asked: the client has requested it, and it holds a reservation.  begun: the provider has confirmed it. The provider also begins responses by
 *   itself, when it hears the end of a sentence; such a response reserves when it begins.  ended: its usage is known, and the reservation settled.
 *
 * Invariants:
 * 1. No message that starts a response is passed on before its reservation, and none that names a model before the token's rules have been asked.
 * 2. Every reservation is settled once, at the latest when the session ends. A response without reported usage counts with what it reserved, unless
 *    the provider never began it.
 * 3. At most `MAX_OPEN` responses are open, with those that wait for a limit that nodes share.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Token } from "../../accounts/index.ts";
import { addUsage, NO_USAGE, type Usage } from "../../engines/relay/index.ts";
import { limitsModels, requireAllowedModels } from "../keys/policy-use.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import { startsInBackground } from "../limits/deferred-work.ts";
import { ASSUMED_OUTPUT_TOKENS, BYTES_PER_TOKEN, MEDIA_BYTES_PER_TOKEN } from "../limits/estimate-usage.ts";
import { refersToOtherInput } from "../limits/referred-input.ts";
import type { ClientMessage, ProviderMessage, SessionDialect } from "./message.ts";
import type { Begun, Reservation, ResponseDemand, SessionAccount } from "./session-account.ts";

export interface SessionMeterParts {
  readonly dialect: SessionDialect;
  readonly provider: string;
  readonly account: SessionAccount;
  readonly token: () => Token | null;
  /** The model that the address of the session names; empty when it names none. */
  readonly model: string;
  readonly isCustomCost: boolean;
  /** Called for each response with what it used. */
  readonly onUsed: (used: UsedResponse) => void;
}

export interface UsedResponse {
  readonly model: string;
  readonly usage: Usage;
  /** US dollars; null when the price is unknown. */
  readonly cost: number | null;
  /** The provider did not report the usage. */
  readonly isEstimated: boolean;
}

/** Why a message was refused. `ends`: the session must be closed. */
export interface Refused {
  readonly error: SignalboxError;
  readonly eventId: string | null;
  readonly ends: boolean;
}

export interface ClientVerdict {
  /** Null when the message may be passed on. */
  readonly refused: Refused | null;
  /** The log keeps the message. */
  readonly isKept: boolean;
}

export interface ProviderVerdict {
  readonly message: ProviderMessage;
  readonly error: SignalboxError | null;
}

interface OpenResponse {
  readonly model: string;
  readonly expected: Usage;
  readonly reservation: Reservation;
  isBegun: boolean;
}

const MAX_OPEN = 16;

export class SessionMeter {
  readonly #parts: SessionMeterParts;
  /** In the order in which they were asked for, or began. */
  readonly #open: OpenResponse[] = [];
  /** Responses that wait for a limit. */
  #waiting = 0;
  #isEnded = false;
  #model: string;
  /** The client has named the model, and its token may use it. */
  #isModelChecked: boolean;
  #transcriptionModel = "";
  #maxOutputTokens: number | null = null;
  /** The conversation contains what no message of the session shows. */
  #refersToOtherInput = false;
  /** What arrived since the last response ended. */
  #textBytes = 0;
  #mediaBytes = 0;
  /** The conversation so far, which every response reads again. */
  #context = 0;
  /** Of a turn whose end has not arrived, or whose usage has not. */
  #turnUsage: Usage | null = null;
  #isTurnOver = false;
  #total: Usage = NO_USAGE;
  #cost: number | null = null;
  #hasUnknownCost = false;
  #state: CallSpend["state"] = "none";

  constructor(parts: SessionMeterParts) {
    this.#parts = parts;
    this.#model = parts.model;
    this.#isModelChecked = parts.model !== "";
  }

  get model(): string {
    return this.#model;
  }

  /** A promise if the message has to wait for a limit; no later message may be given before it is settled. */
  fromClient(bytes: Buffer): ClientVerdict | Promise<ClientVerdict> {
    const { dialect } = this.#parts;
    const message = dialect.readClient(bytes);
    const isKept = dialect.isKnown && message?.mediaBytes === 0;
    if (message === null) {
      const error = new SignalboxError("gateway_malformed_request", {
        message: "The message is not one JSON object",
      });
      return { refused: { error, eventId: null, ends: dialect.toError === null }, isKept };
    }
    if (message.mediaBytes > 0) this.#mediaBytes += message.mediaBytes;
    else this.#textBytes += bytes.length;
    // Also of later responses, which read the conversation again.
    if (!dialect.hasSound) this.#refersToOtherInput ||= refersToOtherInput({ kind: "whole", bytes });
    const judged = this.#judge(message, bytes);
    if (judged instanceof Promise) return judged.then((error) => this.#verdict(error, message, isKept));
    return this.#verdict(judged, message, isKept);
  }

  #judge(message: ClientMessage, bytes: Buffer): SignalboxError | null | Promise<SignalboxError | null> {
    try {
      this.#checkModels(message);
    } catch (error) {
      if (error instanceof SignalboxError) return error;
      throw error;
    }
    this.#applySettings(message);
    if (!message.startsResponse) return null;
    if (this.#parts.dialect.hasTurns && this.#open.length > 0) return null;
    return this.#begin(message, bytes);
  }

  #verdict(error: SignalboxError | null, { eventId }: ClientMessage, isKept: boolean): ClientVerdict {
    if (error === null) return { refused: null, isKept };
    // A rate comes back; a budget, a model or a price does not while the session lasts.
    const ends = error.id !== "gateway_rate_limited" || this.#parts.dialect.toError === null;
    return { refused: { error, eventId, ends }, isKept };
  }

  /** The message is passed on in any case; an error ends the session behind it. A promise as with `fromClient`. */
  fromProvider(bytes: Buffer): ProviderVerdict | Promise<ProviderVerdict> {
    const message = this.#parts.dialect.readProvider(bytes);
    let error: SignalboxError | null | Promise<SignalboxError | null>;
    try {
      error = this.#follow(message);
    } catch (thrown) {
      if (!(thrown instanceof SignalboxError)) throw thrown;
      error = thrown;
    }
    if (error instanceof Promise) return error.then((late) => ({ message, error: late }));
    return { message, error };
  }

  /** Settles what is open. `isLeft`: the client ended the session, and the provider may work on. */
  end(isLeft: boolean): CallSpend {
    this.#isEnded = true;
    for (const response of this.#open.splice(0)) {
      const usage = this.#turnUsage;
      this.#turnUsage = null;
      if (usage !== null) this.#settle(response, usage);
      else if (response.isBegun || isLeft) this.#settle(response, null);
      else response.reservation.settle(response.model, null);
    }
    this.#parts.account.close();
    const { dialect, isCustomCost } = this.#parts;
    const state = dialect.isKnown ? this.#state : "unknown";
    return {
      state,
      usage: this.#total,
      model: this.#model,
      named: null,
      cost: state === "none" ? 0 : this.#cost,
      isCostEstimated: (state === "estimated" || this.#hasUnknownCost) && !isCustomCost,
      isCustomCost,
    };
  }

  #checkModels({ models, startsResponse }: ClientMessage): void {
    const { provider, account } = this.#parts;
    const policy = this.#parts.token()?.policy ?? null;
    if (policy !== null && limitsModels(policy, provider)) {
      const isCertain = models.length > 0 || this.#isModelChecked || !startsResponse;
      requireAllowedModels(policy, provider, { names: models, isCertain });
    }
    for (const model of models) {
      const refusal = account.refuseUnpriced(model);
      if (refusal !== null) throw refusal;
    }
  }

  #applySettings({ model, transcriptionModel, maxOutputTokens, startsResponse }: ClientMessage): void {
    if (model !== undefined) {
      this.#model = model;
      this.#isModelChecked = true;
    }
    if (transcriptionModel !== undefined) this.#transcriptionModel = transcriptionModel;
    if (maxOutputTokens !== undefined && !startsResponse) this.#maxOutputTokens = maxOutputTokens;
  }

  /** An error when a limit has no room. `message` is the one that starts the response; null if the provider begins it by itself. */
  #begin(
    message: ClientMessage | null,
    bytes: Buffer | null,
  ): SignalboxError | null | Promise<SignalboxError | null> {
    if (this.#open.length + this.#waiting >= MAX_OPEN) {
      return new SignalboxError("gateway_rate_limited", {
        message: `${MAX_OPEN} responses of the session are open; wait until one has ended`,
      });
    }
    const model = message?.model ?? this.#model;
    const models = [...new Set([model, ...(message?.models ?? [])])];
    const isBegun = message === null || this.#parts.dialect.hasTurns;
    const demand = this.#demand(model, models, this.#outputLimit(message), bytes);
    const response = { model, expected: demand.expected, isBegun };
    const begun = this.#parts.account.begin(demand);
    if (!(begun instanceof Promise)) return this.#begun(begun, response);
    this.#waiting += 1;
    return begun.then((late) => {
      this.#waiting -= 1;
      return this.#begun(late, response);
    });
  }

  /**
   * Null: no limit is certain. That of a session is one only where it is set once: elsewhere the provider may have refused the message that
   * set it.
   */
  #outputLimit(message: ClientMessage | null): number | null {
    if (this.#parts.dialect.hasTurns) return this.#maxOutputTokens;
    return message?.maxOutputTokens ?? null;
  }

  #demand(
    model: string,
    models: readonly string[],
    limit: number | null,
    bytes: Buffer | null,
  ): ResponseDemand {
    const { dialect, account } = this.#parts;
    const tokensInAudio = Math.ceil(this.#mediaBytes / MEDIA_BYTES_PER_TOKEN);
    const tokensIn = this.#context + tokensInAudio + Math.ceil(this.#textBytes / BYTES_PER_TOKEN);
    const tokensOut = limit ?? Math.max(ASSUMED_OUTPUT_TOKENS, this.#maxOutputTokens ?? 0);
    const tokensOutAudio = dialect.hasSound ? tokensOut : 0;
    const expected = { ...NO_USAGE, tokensIn, tokensOut, tokensInAudio, tokensOutAudio };
    const isOutputKnown = limit !== null;
    // Models that speak end after what is assumed.
    if (dialect.hasSound) return { model, models, expected, largest: expected, isBounded: isOutputKnown };
    const known = { isInputKnown: !this.#refersToOtherInput, isOutputKnown };
    const largest = account.largest(models, expected, known);
    const isBounded = known.isInputKnown && isOutputKnown;
    // The events of the session may not contain what such a response uses.
    if (bytes !== null && startsInBackground({ kind: "whole", bytes }))
      return { model, models, expected: largest, largest, isBounded: true };
    return { model, models, expected, largest, isBounded };
  }

  #begun(begun: Begun, response: Omit<OpenResponse, "reservation">): SignalboxError | null {
    if ("error" in begun) return begun.error;
    // The session ended while the response waited, and the message is not passed on.
    if (this.#isEnded) begun.settle(response.model, null);
    else this.#open.push({ ...response, reservation: begun });
    return null;
  }

  #follow(message: ProviderMessage): SignalboxError | null | Promise<SignalboxError | null> {
    const { dialect, account } = this.#parts;
    if (message.model !== undefined && !this.#isModelChecked) this.#adoptModel(message.model);
    if (message.transcription !== undefined) {
      account.charge(this.#transcriptionModel, message.transcription);
      this.#count(this.#transcriptionModel, message.transcription, false);
    }
    if (message.isBilledByTime === true) {
      this.#hasUnknownCost = true;
      this.#state = "estimated";
    }
    if (dialect.hasTurns) {
      this.#followTurn(message);
      return null;
    }
    if (message.begins === true) {
      const asked = this.#open.find(({ isBegun }) => !isBegun);
      if (asked === undefined) return this.#begin(null, null);
      asked.isBegun = true;
    }
    if (message.refuses === true) this.#dropAsked();
    if (message.ends === true) {
      const at = Math.max(
        0,
        this.#open.findIndex(({ isBegun }) => isBegun),
      );
      const [response] = this.#open.splice(at, 1);
      const isFree = message.isFailed === true && message.usage === undefined;
      if (response !== undefined) {
        if (isFree) response.reservation.settle(response.model, null);
        else this.#settle(response, message.usage ?? null);
      } else if (message.usage !== undefined) this.#settleUnasked(message.usage);
    }
    return null;
  }

  /** The provider names the model of a session whose client named none. */
  #adoptModel(model: string): void {
    this.#model = model;
    this.#isModelChecked = true;
    this.#checkModels({ models: [model], startsResponse: false, mediaBytes: 0, eventId: null });
  }

  /** A turn ends when its last message and its usage have arrived, in either order. */
  #followTurn({ usage, ends }: ProviderMessage): void {
    if (usage !== undefined) this.#turnUsage = usage;
    if (ends === true) this.#isTurnOver = true;
    if (!this.#isTurnOver || this.#turnUsage === null) return;
    const used = this.#turnUsage;
    this.#turnUsage = null;
    this.#isTurnOver = false;
    const response = this.#open.shift();
    if (response !== undefined) this.#settle(response, used);
    else this.#settleUnasked(used);
  }

  /** The error may concern another message. If the response begins all the same, it reserves again. */
  #dropAsked(): void {
    const at = this.#open.findIndex(({ isBegun }) => !isBegun);
    const [response] = at === -1 ? [] : this.#open.splice(at, 1);
    response?.reservation.settle(response.model, null);
  }

  /** `reported` is null when the provider said nothing about the usage. */
  #settle({ model, expected, reservation }: OpenResponse, reported: Usage | null): void {
    const usage = reported ?? expected;
    const name = model === "" ? this.#model : model;
    reservation.settle(name, usage);
    this.#ended(usage);
    this.#count(name, usage, reported === null);
  }

  #settleUnasked(usage: Usage): void {
    this.#parts.account.charge(this.#model, usage);
    this.#ended(usage);
    this.#count(this.#model, usage, false);
  }

  #ended({ tokensIn, tokensOut }: Usage): void {
    this.#context = tokensIn + tokensOut;
    this.#textBytes = 0;
    this.#mediaBytes = 0;
  }

  #count(model: string, usage: Usage, isEstimated: boolean): void {
    const cost = this.#parts.account.costOf(model, usage);
    this.#total = addUsage(this.#total, usage);
    if (cost === null) this.#hasUnknownCost = true;
    else this.#cost = (this.#cost ?? 0) + cost;
    if (isEstimated) this.#state = "estimated";
    else if (this.#state === "none") this.#state = "reported";
    this.#parts.onUsed({ model, usage, cost, isEstimated });
  }
}
