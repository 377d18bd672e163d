/**
 * Jobs that providers run for callers: batches, videos, fine-tuning. What a job may cost is reserved before it starts and charged when it has ended, once, to the
 * limits of the caller that started it, with a row in the call log for each of its models.
 *
 *   reserve ── started ──► stored, reservation held ──► ended at the provider ──► row removed: settled by the process that removed it
 *      └────── refused ──► released                └──► not seen to end for `GIVE_UP_MS`: settled with what was reserved
 *
 * Whoever asks for the state of a job through the gateway lets it be settled as soon as the answer says that it has ended. Without such a request the
 * gateway asks once an hour, with the stored key of the gateway; for a job that was started with a caller's own key, only that caller can ask.
 *
 * Invariants:
 * 1. A job is settled by the process whose DELETE removed its row: nothing is charged twice.
 * 2. The reservation lives in the memory of the process that started the job. A process that ends has counted it as spent (`spend-store.ts`), so a job
 *    without a reservation is charged only with what exceeds it.
 * 3. A provider is asked at most once an hour about a job, except after a request of a client that has seen its end.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { type Fields, isFields } from "../../core/fields.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { ulid } from "../../core/ulid.ts";
import type { OwnServer } from "../../contracts/own-server.ts";
import type { Tokens } from "../../accounts/index.ts";
import type { CallLog } from "../../engines/call-log/index.ts";
import type { CallRules, StepCharge } from "../limits/call-rules.ts";
import type { GatewayLimits } from "../limits/create-limits.ts";
import type { Grant } from "../limits/grant.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import type { StepDemand } from "../limits/limit-rule.ts";
import { unknownPrice } from "../limits/step-amounts.ts";
import { type PricingParts, pricingOf } from "../limits/step-price.ts";
import { readableStep } from "../limits/readable-step.ts";
import { toBookedRecord } from "../log-api/booked-record.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import type { CallOptions } from "../step/call-options.ts";
import { toModelName } from "../step/model-name.ts";
import type { Step } from "../step/step.ts";
import { headersOfCaller } from "../call/as-caller.ts";
import type { Arrival, CallOutcome } from "../call/call-start.ts";
import { JOB_APIS, type JobApi, jobApiAt, type JobDemand, type JobItem } from "./job-api.ts";
import { JobBill, type ModelBill } from "./job-bill.ts";
import type { JobDetails, JobRef, JobStore, StoredJob } from "./job-store.ts";
import { readLines } from "./read-lines.ts";

const HOUR_MS = 3_600_000;
const SWEEP_MS = 60_000;
/** A process that has not asked for so long after it should have is gone. */
const ABANDONED_MS = 2 * HOUR_MS;
/** Batches end within a day, and their results stay for weeks. */
const GIVE_UP_MS = 8 * 24 * HOUR_MS;

/** Sends a GET to a path of the provider, through the gateway. */
type Ask = (path: string) => Promise<Response>;

export interface JobsParts {
  readonly store: JobStore;
  readonly clock: Clock;
  readonly server: OwnServer;
  readonly gateways: Pick<Gateways, "find">;
  readonly tokens: Pick<Tokens, "find">;
  readonly limits: Pick<GatewayLimits, "limits" | "prices">;
  readonly callLog: Pick<CallLog, "record" | "whenRoom">;
  readonly onError: (error: unknown) => void;
}

/** A job whose cost is reserved, and whose request is not answered yet. */
export interface ReservedJob {
  /** The request was answered. */
  ended(outcome: CallOutcome): void;
  /** The request was not sent. */
  release(): void;
}

interface Held {
  readonly rules: CallRules;
  readonly grant: Grant;
}

export class Jobs {
  readonly #parts: JobsParts;
  /** Names this process among those that share the database. */
  readonly #self = randomUUID();
  readonly #held = new Map<string, Held>();
  /** Jobs that are being settled: the requests that this takes pass through the gateway, too. */
  readonly #checking = new Set<string>();
  readonly #working = new Set<Promise<void>>();
  #sweeping: Repetition | null = null;
  #isStopped = false;

  constructor(parts: JobsParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#sweeping = repeat(SWEEP_MS, () => this.sweep(), this.#parts.onError);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([this.#sweeping?.stop(), ...this.#working]);
  }

  /** The API of the job that a step starts; null for every other step. */
  apiOf({ requestType, path, upstream }: Step): JobApi | null {
    if (requestType !== "" || upstream.method !== "POST") return null;
    return jobApiAt(path) ?? null;
  }

  /** Reserves what the job of a request may cost; throws if a limit has no room for it, or its price is unknown. */
  async reserve(api: JobApi, arrival: Arrival, step: Step, options: CallOptions): Promise<ReservedJob> {
    const { gateway, caller } = arrival;
    const { limits, prices } = this.#parts.limits;
    const request = bodyOf(step);
    const pricing = pricingOf(prices, { gateway, options, token: caller.token, tokenId: caller.tokenId });
    const rules = limits.rulesOf(gateway, caller.token);
    rules?.setMetadata(options.metadata ?? null);
    const needsPrice = rules?.needsTokens === true;
    const demand = api.demandOf(step.path, request);
    const bill = await this.#estimate(
      demand,
      pricing,
      step.provider.slug,
      needsPrice,
      this.#asCaller(arrival, step),
    );
    const grant = rules === null ? null : await take(rules, step, bill);
    const held = rules === null || grant === null ? null : { rules, grant };
    const details: JobDetails = {
      api: api.name,
      path: step.path,
      query: fixedQuery(caller.query),
      model: modelOf(request, bill, step),
      reserved: (bill ?? []).map(({ model, cost, usage }) => ({ model, cost, tokens: tokensOf(usage) })),
      isHeld: held !== null,
      keyAlias: options.keyAlias ?? null,
      tokenId: caller.token?.id ?? null,
      metadata: options.metadata ?? null,
      eventId: options.eventId ?? null,
      custom: pricing.custom,
    };
    return {
      ended: (outcome) => this.#started(api, arrival, step, details, held, outcome),
      release: () => held?.grant.release(),
    };
  }

  /** Watches a GET that may read the state of a job; undefined for other paths. */
  watch(arrival: Arrival, provider: string, path: string): ((outcome: CallOutcome) => void) | undefined {
    const found = refAt(path);
    if (found === null) return undefined;
    const { accountId, id: gatewayId } = arrival.gateway;
    const ref = { accountId, gatewayId, provider, id: found.id };
    if (this.#checking.has(keyOf(ref))) return undefined;
    return ({ status, body, isBodyWhole, step }) => {
      const state = status < 300 && isBodyWhole ? parse(body) : null;
      if (state === null || found.api.resultOf(path, found.id, state, "") === null) return;
      const work = this.#seen(ref, this.#asCaller(arrival, step)).finally(() => this.#working.delete(work));
      this.#working.add(work);
    };
  }

  /** Asks for the jobs that are due. */
  async sweep(): Promise<void> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const abandonedAt = store.isShared ? now - ABANDONED_MS : now;
    for (const job of await store.due(this.#self, now, abandonedAt)) {
      if (this.#isStopped) return;
      await this.#check(job, this.#asOperator(job));
    }
  }

  /** A client has seen the end of a job. */
  async #seen(ref: JobRef, ask: Ask): Promise<void> {
    const { store, clock, onError } = this.#parts;
    try {
      const job = await store.find(ref);
      if (job === undefined) return;
      // The process that holds the reservation settles it.
      if (store.isShared && !this.#held.has(keyOf(ref))) await store.setDue(ref, clock.now());
      else await this.#check(job, ask);
    } catch (error) {
      onError(error);
    }
  }

  #started(
    api: JobApi,
    { gateway }: Arrival,
    step: Step,
    details: JobDetails,
    held: Held | null,
    { status, head, body, isBodyWhole, isAbandoned, attemptStartedAt }: CallOutcome,
  ): void {
    const { store, clock, onError } = this.#parts;
    const now = clock.now();
    const answer = status < 300 && isBodyWhole ? parse(body) : null;
    const id = answer === null ? null : api.idOf(answer);
    if (id === null) {
      // The provider may have started a job that nobody can ask for: it counts with what was reserved.
      const mayRun = head === null ? isAbandoned && attemptStartedAt !== null : head.status < 300;
      if (mayRun) this.#book(gateway, step.provider.slug, step.path, details, "reserved", true, now, held);
      else held?.grant.release();
      return;
    }
    const { accountId, id: gatewayId } = gateway;
    const job: StoredJob = {
      accountId,
      gatewayId,
      provider: step.provider.slug,
      id,
      details,
      createdAt: now,
    };
    if (held !== null) this.#held.set(keyOf(job), held);
    // Without its row, the job counts with what was reserved for it when this process ends.
    store.add(job, this.#self, now + HOUR_MS).catch(onError);
  }

  async #estimate(
    demand: JobDemand | null,
    pricing: PricingParts,
    provider: string,
    needsPrice: boolean,
    ask: Ask,
  ): Promise<readonly ModelBill[] | null> {
    const bill = new JobBill(pricing, provider);
    if (demand === null) return null;
    if (demand.kind === "items") for (const item of demand.items) bill.add(item);
    else {
      // Without a limit on what it costs, nobody needs to know.
      if (!needsPrice) return null;
      for (const path of demand.paths) {
        const response = await ask(path);
        if (!response.ok) return null;
        await readLines(response, (line) => addItem(bill, demand.toItem(line)));
      }
    }
    return bill.models;
  }

  async #check(job: StoredJob, ask: Ask): Promise<void> {
    const { store, clock, gateways } = this.#parts;
    const key = keyOf(job);
    if (this.#checking.has(key)) return;
    this.#checking.add(key);
    try {
      const gateway = gateways.find(job.accountId, job.gatewayId);
      if (gateway === undefined) {
        await store.remove(job);
        this.#release(key);
        return;
      }
      const bill = await this.#billOf(job, gateway, ask);
      if (bill !== null) await this.#settle(job, gateway, bill, false);
      else if (clock.now() - job.createdAt >= GIVE_UP_MS) await this.#settle(job, gateway, "reserved", true);
      else await store.setDue(job, clock.now() + HOUR_MS);
    } finally {
      this.#checking.delete(key);
    }
  }

  /** What an ended job has cost; null while it runs, or if nobody can tell. `reserved`: as its request asked. */
  async #billOf(
    { details, id, provider, accountId }: StoredJob,
    gateway: Gateway,
    ask: Ask,
  ): Promise<readonly ModelBill[] | "reserved" | null> {
    const api = JOB_APIS.find(({ name }) => name === details.api);
    if (api === undefined) return null;
    const response = await ask(api.statusPath(details.path, id));
    const status = response.ok ? parse(Buffer.from(await response.arrayBuffer())) : null;
    const result = status === null ? null : api.resultOf(details.path, id, status, details.model);
    if (result === null) return null;
    if (result.kind === "reserved") return "reserved";
    const { prices } = this.#parts.limits;
    const pricing: PricingParts = {
      prices,
      own: prices.ofAccount(accountId),
      custom: details.custom,
      unknownPrice: gateway.settings.spend_limits?.unknown_price ?? "block",
    };
    const bill = new JobBill(pricing, provider);
    if (result.kind === "items") for (const item of result.items) bill.add(item);
    else {
      for (const path of result.paths) {
        const lines = await ask(path);
        if (!lines.ok) return null;
        await readLines(lines, (line) => addItem(bill, api.itemOf(line, details.model)));
      }
    }
    return bill.models;
  }

  async #settle(
    job: StoredJob,
    gateway: Gateway,
    given: readonly ModelBill[] | "reserved",
    isGivenUp: boolean,
  ): Promise<void> {
    const { store, callLog } = this.#parts;
    if (gateway.settings.collect_logs) await callLog.whenRoom();
    if (!(await store.remove(job))) {
      this.#release(keyOf(job));
      return;
    }
    const held = this.#held.get(keyOf(job)) ?? null;
    this.#held.delete(keyOf(job));
    const { details, provider, createdAt, id } = job;
    this.#book(gateway, provider, `${details.path}/${id}`, details, given, isGivenUp, createdAt, held);
  }

  /** Charges the limits and writes the rows. */
  #book(
    gateway: Gateway,
    provider: string,
    path: string,
    details: JobDetails,
    given: readonly ModelBill[] | "reserved",
    isCostEstimated: boolean,
    createdAt: number,
    held: Held | null,
  ): void {
    const { callLog, clock, tokens, limits } = this.#parts;
    const bills: readonly Booked[] =
      given === "reserved"
        ? details.reserved.map(({ model, cost, tokens: all }) => ({
            model,
            cost,
            tokensIn: all,
            tokensOut: 0,
          }))
        : given.map(({ model, cost, usage }) => ({ ...usage, model, cost }));
    const charges = bills.map(({ model, cost, tokensIn, tokensOut }): StepCharge => ({
      provider,
      models: [model],
      cost: cost ?? 0,
      tokens: tokensIn + tokensOut,
    }));
    if (held !== null) held.rules.settle(held.grant, charges);
    else {
      const token =
        details.tokenId === null ? null : (tokens.find(gateway.accountId, details.tokenId) ?? null);
      const rules = limits.limits.rulesOf(gateway, token);
      rules?.setMetadata(details.metadata);
      rules?.settle(null, beyond(charges, details));
    }
    if (!gateway.settings.collect_logs) return;
    for (const bill of bills) {
      callLog.record(
        toBookedRecord(gateway, ulid(clock.now()), clock.now(), {
          ...bill,
          provider,
          path,
          isCostEstimated,
          isCustomCost: details.custom !== undefined,
          metadata: details.metadata,
          eventId: details.eventId,
          tokenId: details.tokenId,
          durationMs: clock.now() - createdAt,
        }),
      );
    }
  }

  #release(key: string): void {
    this.#held.get(key)?.grant.release();
    this.#held.delete(key);
  }

  /** As the sender of `arrival`, with its credentials. */
  #asCaller(arrival: Arrival, { provider }: Step): Ask {
    const headers = headersOfCaller(arrival);
    return (path) => this.#ask(arrival.gateway, provider.slug, path, arrival.caller.query, headers, null);
  }

  /** With the key that the gateway stores for the provider. */
  #asOperator({ accountId, gatewayId, provider, details }: StoredJob): Ask {
    const { keyAlias, query } = details;
    const headers: Record<string, string> = keyAlias === null ? {} : { "gw-aig-byok-alias": keyAlias };
    return (path) => this.#ask({ accountId, id: gatewayId }, provider, path, query, headers, undefined);
  }

  #ask(
    { accountId, id }: Pick<Gateway, "accountId" | "id">,
    provider: string,
    path: string,
    query: string,
    headers: Readonly<Record<string, string>>,
    authorization: null | undefined,
  ): Promise<Response> {
    const parts = [accountId, id, provider].map(encodeURIComponent).join("/");
    const mark = query === "" ? "" : path.includes("?") ? `&${query}` : `?${query}`;
    return this.#parts.server.call({
      method: "GET",
      target: `/v1/${parts}/${path}${mark}`,
      headers: { ...headers, "gw-aig-collect-log": "false", "gw-aig-skip-cache": "true" },
      // Usage is read from the results; no text of them is passed on.
      staysInside: true,
      ...(authorization === undefined ? {} : { authorization }),
    });
  }
}

interface Booked {
  readonly model: string;
  readonly cost: number | null;
  readonly tokensIn: number;
  readonly tokensOut: number;
}

function addItem(bill: JobBill, item: JobItem | null): void {
  if (item !== null) bill.add(item);
}

/** Null if no limit applies to what the job uses. */
async function take(
  rules: CallRules,
  { provider, model }: Step,
  bill: readonly ModelBill[] | null,
): Promise<Grant | null> {
  if (!rules.needsTokens) return null;
  const slug = provider.slug;
  const models = bill === null || bill.length === 0 ? [{ model, cost: null, usage: null }] : bill;
  const cost = models.reduce((sum, one) => sum + (one.cost ?? 0), 0);
  const tokens = models.reduce((sum, one) => sum + (one.usage === null ? 0 : tokensOf(one.usage)), 0);
  // A rule takes the largest of several demands, and this is one job: each model demands all of it.
  const demand = models.map((one): StepDemand => ({
    provider: slug,
    model: one.model,
    cost,
    most: cost,
    tokens,
    isBounded: true,
  }));
  const unpriced = models.find((one) => one.cost === null);
  if (unpriced !== undefined && demand.some((one) => rules.limitsCostOf(one))) {
    throw unknownPrice({ provider: slug, model: unpriced.model });
  }
  const taken = await rules.reserve(demand);
  if (taken instanceof Refusal) throw taken.toError();
  return taken;
}

/** The reservation was counted when the process that held it ended. */
function beyond(charges: readonly StepCharge[], { reserved, isHeld }: JobDetails): readonly StepCharge[] {
  if (!isHeld) return charges;
  let cost = reserved.reduce((sum, one) => sum + (one.cost ?? 0), 0);
  let tokens = reserved.reduce((sum, one) => sum + one.tokens, 0);
  return charges.map((charge) => {
    const less = { cost: Math.min(cost, charge.cost), tokens: Math.min(tokens, charge.tokens) };
    cost -= less.cost;
    tokens -= less.tokens;
    return { ...charge, cost: charge.cost - less.cost, tokens: charge.tokens - less.tokens };
  });
}

function bodyOf(step: Step): Fields {
  const { body } = readableStep(step).upstream;
  return (body.kind === "whole" ? parse(body.bytes) : null) ?? {};
}

function modelOf(request: Fields, bill: readonly ModelBill[] | null, { model }: Step): string {
  const named = toModelName(request["model"]);
  if (named !== null) return named;
  return model === "" ? (toModelName(bill?.[0]?.model) ?? "") : model;
}

function parse(bytes: Buffer): Fields | null {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

function tokensOf({ tokensIn, tokensOut }: ModelBill["usage"]): number {
  return tokensIn + tokensOut;
}

function keyOf({ accountId, gatewayId, provider, id }: JobRef): string {
  return `${accountId} ${gatewayId} ${provider} ${id}`;
}

/** Azure wants the version of its API in every request. Nothing else is kept: a query may contain a key. */
function fixedQuery(query: string): string {
  return query.split("&").find((pair) => pair.startsWith("api-version=")) ?? "";
}

const BY_ID = /^(.*(?:^|\/)(?:batches|batch\/jobs|videos|fine_tuning\/jobs))\/([\w.-]{1,256})$/;
const BY_NAME = /^v1beta\/((?:batches|models\/[\w.-]+\/operations)\/[\w.-]{1,256})$/;

/** The job whose state is at a path. */
function refAt(path: string): { readonly api: JobApi; readonly id: string } | null {
  const name = BY_NAME.exec(path)?.[1];
  if (name !== undefined) {
    const api = JOB_APIS.find((one) => one.name === (name.startsWith("batches/") ? "gemini_batch" : "veo"));
    return api === undefined ? null : { api, id: name };
  }
  const [, base = "", id] = BY_ID.exec(path) ?? [];
  const api = id === undefined ? undefined : jobApiAt(base);
  return api === undefined || id === undefined ? null : { api, id };
}
