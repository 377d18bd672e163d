/**
 * The auto router: the model `cloudflare/auto` (or `auto`) is one of `gateway.auto.models`, chosen for each call by how difficult it looks, and kept for a turn, so that the
 * provider's prompt cache survives.
 *
 *   pool     the configured models and those that `gw-aig-allowed-models` names, as far as the call allows them, a key is stored for their provider, and the request fits
 *   choice   from the first (simplest) to the last (strongest) model of the pool, by `estimateDifficulty`
 *   turn     one input of a user with the tool calls that follow: the model stays
 *   session  `gw-aig-session-id`: a later turn moves to a stronger model if it needs one, and to a simpler one only while the conversation is short
 *
 * The other models of the pool are the next steps: first the stronger ones, then the simpler ones. Which model a session has is in the memory of this process.
 */
import { SignalboxError } from "@signalbox/protocol";
import { AllowRules } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Fields } from "../../core/fields.ts";
import { growingCache } from "../../core/growing-cache.ts";
import { sha256 } from "../../core/secret.ts";
import { ulid } from "../../core/ulid.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { Arrival, CallPlan } from "../call/call-start.ts";
import { mayUseStoredKeys } from "../keys/caller-token.ts";
import { requireAllowedStep } from "../keys/policy-use.ts";
import type { ProviderKeys } from "../keys/provider-keys.ts";
import { estimateInput } from "../limits/estimate-usage.ts";
import type { PriceTable } from "../limits/price-table.ts";
import type { ModelNames } from "../models/model-names.ts";
import type { ModelTarget } from "../models/model-target.ts";
import { needsKey } from "../plan/plan-step.ts";
import type { CallOptions } from "../step/call-options.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";
import type { StepSource } from "../step/step-source.ts";
import { estimateDifficulty, HARDEST, turnOf } from "./difficulty.ts";
import type { PlanTarget } from "./resolve-route.ts";

export interface AutoRouterParts {
  /** `provider/model`, from the simplest to the strongest. */
  readonly models: readonly string[];
  readonly names: ModelNames;
  readonly keys: ProviderKeys;
  readonly prices: Pick<PriceTable, "contextWindowOf">;
  readonly clock: Clock;
}

export interface AutoCall {
  readonly options: CallOptions;
  readonly fields: () => Fields;
  readonly body: RequestBody;
}

/** The last model of a session, and the turn that it answered. */
interface Pin {
  readonly turn: string;
  readonly model: string;
  readonly at: number;
}

type Reason = "forced_by_candidate_pool" | "cost_optimal_within_pool" | "turn_affinity" | "session_affinity";

const MAX_SESSIONS = 10_000;
/** Providers keep a prompt for an hour at most. */
const KEEP_MS = 3_600_000;
/** Shorter conversations cost little without a cache. */
const SHORT_TOKENS = 4000;

export class AutoRouter {
  readonly #parts: AutoRouterParts;
  readonly #pins = growingCache<Pin>(MAX_SESSIONS);

  constructor(parts: AutoRouterParts) {
    this.#parts = parts;
  }

  /** Throws `gateway_route_without_model` if no model can take the call. */
  plan(arrival: Arrival, call: AutoCall, plan: PlanTarget): CallPlan {
    const { clock } = this.#parts;
    const { options } = call;
    const tokens = estimateInput(call.body);
    const pool = this.#poolFor(arrival, options, tokens);
    const fields = call.fields();
    const session = options.hasSessionAffinity === false ? undefined : (options.sessionId ?? options.turnId);
    const place = session === undefined ? null : pinName(arrival, session);
    const turn = options.turnId ?? sha256(turnOf(fields)).toString("hex");
    const { index, reason } = this.#choose(pool, place, turn, estimateDifficulty(fields, tokens), tokens);
    const policy = arrival.caller.token?.policy ?? null;
    const order = [...pool.slice(index), ...pool.slice(0, index).toReversed()];
    const source = new PlannedSteps(order, (target) => {
      const step = plan(target);
      if (policy !== null) requireAllowedStep(policy, step);
      return step;
    });
    const first = source.next();
    if (first === null) throw source.error ?? withoutModel();
    const pin = ({ provider, model }: Pick<Step, "provider" | "model">) => {
      if (place !== null)
        this.#pins.set(place, { turn, model: nameOf({ provider, model }), at: clock.now() });
    };
    pin(first);
    return {
      options,
      steps: [first],
      moreSteps: source,
      showsStep: false,
      showsModel: true,
      routeHeaders: ["gw-aig-routing-reason", reason, "gw-aig-routing-decision-id", ulid(clock.now())],
      // Another model may have answered.
      onEnded: ({ step, isAnswer, status }) => {
        if (isAnswer && status < 400) pin(step);
      },
    };
  }

  #poolFor(arrival: Arrival, options: CallOptions, tokens: number): ModelTarget[] {
    const { models, names, prices } = this.#parts;
    const { allowedModels = [], allowedProviders = [] } = options;
    const named = allowedModels.filter((name) => !/[*!]/.test(name));
    const ofModels = AllowRules.ofModels(allowedModels.map(lowerCase));
    const ofProviders = AllowRules.ofProviders(allowedProviders.map(lowerCase));
    const pool = new Map<string, ModelTarget>();
    for (const name of [...models, ...named]) {
      const found = names.find(arrival.gateway.accountId, name);
      if (found?.kind !== "model") continue;
      const { provider, model } = found;
      const isAllowed =
        ofModels.allows(provider.slug, model.toLowerCase()) && ofProviders.allows(provider.slug, "");
      const window = prices.contextWindowOf(provider.slug, model);
      if (!isAllowed || (window !== null && tokens > window) || !this.#hasKey(arrival, found, options))
        continue;
      pool.set(nameOf(found), { provider, model, isExplicit: false });
    }
    if (models.length === 0 && named.length === 0) {
      throw malformed(
        "The auto router has no models: set gateway.auto.models, or name some in gw-aig-allowed-models",
      );
    }
    if (pool.size === 0) throw withoutModel();
    return [...pool.values()];
  }

  /** The key of the caller, which is for one provider, goes to none. */
  #hasKey(
    { gateway, caller }: Arrival,
    { provider }: Pick<ModelTarget, "provider">,
    { keyAlias }: CallOptions,
  ): boolean {
    if (!needsKey(provider)) return true;
    if (!mayUseStoredKeys(gateway, caller.isAuthenticated)) return false;
    try {
      return this.#parts.keys.poolFor(gateway, provider, keyAlias) !== null;
    } catch (error) {
      // The provider has no key with this alias.
      if (error instanceof SignalboxError) return false;
      throw error;
    }
  }

  #choose(
    pool: readonly ModelTarget[],
    place: string | null,
    turn: string,
    difficulty: number,
    tokens: number,
  ): { readonly index: number; readonly reason: Reason } {
    if (pool.length === 1) return { index: 0, reason: "forced_by_candidate_pool" };
    const wanted = Math.round((difficulty / HARDEST) * (pool.length - 1));
    const pin = place === null ? undefined : this.#pins.get(place);
    const isFresh = pin !== undefined && Math.abs(this.#parts.clock.now() - pin.at) < KEEP_MS;
    const kept = isFresh ? pool.findIndex((target) => nameOf(target) === pin.model) : -1;
    if (kept === -1) return { index: wanted, reason: "cost_optimal_within_pool" };
    if (pin?.turn === turn) return { index: kept, reason: "turn_affinity" };
    const stays = wanted === kept || (wanted < kept && tokens > SHORT_TOKENS);
    return stays
      ? { index: kept, reason: "session_affinity" }
      : { index: wanted, reason: "cost_optimal_within_pool" };
  }
}

/** The steps of the pool in their order, each planned when it is needed. Models that cannot take the request are passed over. */
class PlannedSteps implements StepSource {
  readonly refusal = null;
  /** Why the last model could not be planned. */
  error: SignalboxError | null = null;
  readonly #targets: ModelTarget[];
  readonly #plan: PlanTarget;

  constructor(targets: ModelTarget[], plan: PlanTarget) {
    this.#targets = targets;
    this.#plan = plan;
  }

  get mayHaveNext(): boolean {
    return this.#targets.length > 0;
  }

  next(): Step | null {
    for (let target = this.#targets.shift(); target !== undefined; target = this.#targets.shift()) {
      try {
        return this.#plan(target);
      } catch (error) {
        // A later step is planned in the middle of a call, where nothing catches an error.
        this.error =
          error instanceof SignalboxError ? error : new SignalboxError("internal", { cause: error });
      }
    }
    return null;
  }
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}

function nameOf({ provider, model }: Pick<ModelTarget, "provider" | "model">): string {
  return `${provider.slug}/${model}`;
}

function pinName({ gateway, caller }: Arrival, session: string): string {
  return `${gateway.accountId}/${gateway.id}/${caller.tokenId ?? ""} ${session}`;
}

function withoutModel(): SignalboxError {
  return new SignalboxError("gateway_route_without_model", {
    message:
      "The auto router has no model for this call: none that is allowed, has a stored key and takes a request of this size",
  });
}
