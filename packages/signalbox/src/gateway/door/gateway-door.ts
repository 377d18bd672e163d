/**
 * The entrance of the data plane, `/v1/{account_id}/{gateway_id}/{provider}/{path}`. The order of work is part of the contract: path →
 * gateway → token → provider → body → limits → cache → upstream. Everything up to the token is decided from the head of the request, so
 * a refused caller costs no body, no upstream request and no log row.
 */
import type { Duplex } from "node:stream";
import { DOOR_WORDS, SignalboxError } from "@signalbox/protocol";
import { hasBody, type HttpRequest, type HttpResponse } from "../../engines/http-server/index.ts";
import { NO_BODY, type RequestBody } from "../../engines/relay/index.ts";
import type { Area } from "../../http/area.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Arrival, CallPlan } from "../call/call-start.ts";
import type { ResumableRuns } from "../call/resumable-runs.ts";
import type { JobApi } from "../jobs/job-api.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { requireAllowedSteps, stampOptions } from "../keys/policy-use.ts";
import type { GatewayMetrics } from "../metrics.ts";
import {
  checkProviderPath,
  decodePath,
  readCallOptions,
  readForwardedHeaders,
  refuseOwnTokenInTarget,
} from "../plan/forwarded-request.ts";
import { planStep } from "../plan/plan-step.ts";
import { stepContextOf } from "../plan/step-request.ts";
import { COMPAT, type UniversalCall } from "../plan/universal-step.ts";
import { parseUniversalSteps } from "../plan/universal-steps.ts";
import { orderSteps, type StepOrderParts } from "../routes/order-steps.ts";
import { planUniversalRoute } from "../routes/universal-route.ts";
import type { CallOptions } from "../step/call-options.ts";
import { malformed } from "../step/malformed.ts";
import type { Step } from "../step/step.ts";
import { arrive, type Incoming, requireMethod } from "./arrive.ts";
import {
  ACCOUNT_DOORS,
  type DoorPath,
  parseAccountDoor,
  parseBareDoor,
  KNOWN_PATHS,
  parseGoogleDoor,
  parseCompatDoor,
} from "./door-path.ts";
import { callerShare } from "../call/caller-share.ts";
import { readWholeBody, receiveBody } from "./receive-body.ts";
import { UnifiedDoor, type UnifiedDoorParts } from "./unified-door.ts";

export interface GatewayDoorParts extends UnifiedDoorParts {
  readonly runs: ResumableRuns;
  readonly jobs: Jobs;
  readonly metrics: GatewayMetrics;
  readonly stepOrder: StepOrderParts;
  /** Loads the part that serves WebSockets. */
  readonly openRealtime: () => Promise<RealtimeSockets>;
}

/** Serves WebSockets. */
export interface RealtimeSockets {
  upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void>;
  close(): void;
}

/** In place of a provider: streams that can be read again. */
const RUN = "run";

/** The body of a refused request up to this size is read and dropped to keep the connection; after a larger one it is closed. */
const SKIPPED_BODY_BYTES = 64 * 1024;

export class GatewayDoor implements Area {
  readonly name = "gateway";
  readonly segments = ["v1", "v1beta"];
  readonly dialect = "gateway";
  readonly isForeign = true;
  readonly guest = { segments: ["accounts", "client"], path: ACCOUNT_DOORS };
  readonly #parts: GatewayDoorParts;
  readonly #unified: UnifiedDoor;
  #realtime: Promise<RealtimeSockets> | undefined;

  constructor(parts: GatewayDoorParts) {
    this.#parts = parts;
    this.#unified = new UnifiedDoor(parts, (arrival, slug, path) => this.#servePlain(arrival, slug, path));
  }

  /** The usual call creates one promise, which waits for its body: `async` functions here cost 3 % of a JSON call on 32 connections, 6 % on one. */
  handle(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void> {
    const incoming: Incoming = { request, response, context, startedAt: performance.now() };
    try {
      // TRACE would send the caller's headers back (RFC 9110, section 9.3.8); no provider uses it.
      if (request.method === "TRACE") throw new SignalboxError("method_not_allowed");
      const path = parseGatewayPath(context);
      if ("endpoint" in path) return this.#serveUnified(path, incoming);
      const arrival = arrive(this.#parts, path, incoming);
      return path.provider === null
        ? this.#serveUniversal(arrival)
        : this.#servePlain(arrival, path.provider, path.path);
    } catch (error) {
      throw this.#refused(incoming, error);
    }
  }

  /** Loaded with the first one: most installations have no realtime sessions. */
  async upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void> {
    this.#realtime ??= this.#parts.openRealtime();
    await (await this.#realtime).upgrade(request, socket, head, context);
  }

  /** Closes all WebSockets, and ends what runs in the background. */
  async closeSockets(): Promise<void> {
    this.#unified.close();
    this.#parts.runs.close();
    (await this.#realtime)?.close();
  }

  async #serveUnified(path: DoorPath, incoming: Incoming): Promise<void> {
    try {
      await this.#unified.handle(path, incoming);
    } catch (error) {
      throw this.#refused(incoming, error);
    }
  }

  /** Counts a refused call, and closes a connection on which much of its body is still to come. Returns the error to throw. */
  #refused({ request, response }: Incoming, error: unknown): unknown {
    if (error instanceof SignalboxError) this.#parts.metrics.refused(error.id);
    if (!request.complete && !isSmall(request)) response.shouldKeepAlive = false;
    return error;
  }

  #run(arrival: Arrival, plan: CallPlan): void | Promise<void> {
    const policy = arrival.caller.token?.policy ?? null;
    if (policy !== null) requireAllowedSteps(policy, plan.steps);
    return this.#parts.runner.run({ ...arrival, ...plan });
  }

  async #startJob(api: JobApi, arrival: Arrival, step: Step, options: CallOptions): Promise<void> {
    const policy = arrival.caller.token?.policy ?? null;
    if (policy !== null) requireAllowedSteps(policy, [step]);
    const job = await this.#parts.jobs.reserve(api, arrival, step, options);
    try {
      await this.#run(arrival, {
        // A stored answer starts no job.
        options: { ...options, skipCache: true },
        steps: [{ ...step, isTracked: true }],
        showsStep: false,
        onEnded: (outcome) => job.ended(outcome),
      });
    } catch (error) {
      job.release();
      throw error;
    }
  }

  #servePlain(arrival: Arrival, slug: string, path: string): void | Promise<void> {
    const { request, gateway, caller } = arrival;
    const { providers, authenticator } = this.#parts;
    const provider = providers.find(gateway.accountId, slug);
    if (provider === undefined) {
      if (slug === RUN) return this.#parts.runs.serve(arrival, path);
      throw new SignalboxError("gateway_unknown_provider");
    }
    refuseOwnTokenInTarget(authenticator, path, caller.query);
    const forwarded = readForwardedHeaders(
      request.rawHeaders,
      request.headers.connection,
      provider.credentialHeaders,
      authenticator,
      caller.text,
    );
    const options = stampOptions(caller.token?.policy ?? null, forwarded.options);
    const start = (body: RequestBody) => {
      const step = planStep(this.#parts, {
        context: stepContextOf(arrival),
        provider,
        method: request.method ?? "GET",
        path,
        query: caller.query,
        forwarded,
        contentType: request.headers["content-type"],
        isEncoded: (request.headers["content-encoding"] ?? "identity").toLowerCase() !== "identity",
        body,
        options,
      });
      const { jobs } = this.#parts;
      const api = jobs.apiOf(step);
      if (api !== null) return this.#startJob(api, arrival, step, options);
      const onEnded = request.method === "GET" ? jobs.watch(arrival, slug, path) : undefined;
      return this.#run(arrival, { options, steps: [step], showsStep: false, onEnded });
    };
    if (!hasBody(request)) return start(NO_BODY);
    return new Promise((resolve, reject) => {
      const refuse = (error: unknown) => reject(this.#refused(arrival, error));
      const onBody = (body: RequestBody) => {
        try {
          const running = start(body);
          if (running instanceof Promise) running.then(resolve, refuse);
          else resolve();
        } catch (error) {
          refuse(error);
        }
      };
      receiveBody(this.#parts, arrival, onBody, refuse);
    });
  }

  async #serveUniversal(arrival: Arrival): Promise<void> {
    const { request, gateway, caller } = arrival;
    try {
      requireMethod(request, "POST");
      const policy = caller.token?.policy ?? null;
      const call: UniversalCall = {
        context: stepContextOf(arrival),
        options: stampOptions(policy, readCallOptions(request.rawHeaders)),
        share: callerShare(this.#parts, arrival),
      };
      if (!hasBody(request)) throw malformed("The body must be an array of steps");
      const bytes = await readWholeBody(arrival, call.share, this.#parts.bodyLimits.keepBytes);
      const routed = planUniversalRoute(this.#parts.routes, this.#parts, arrival, call, bytes);
      if (routed !== null) {
        await this.#run(arrival, routed instanceof Promise ? await routed : routed);
        return;
      }
      const { steps, options } = parseUniversalSteps(bytes, call, this.#parts);
      await this.#run(arrival, {
        // The headers of a step are the caller's, too.
        options: stampOptions(policy, options),
        steps: orderSteps(steps, gateway, call.options, this.#parts.stepOrder),
        showsStep: true,
      });
    } catch (error) {
      throw this.#refused(arrival, error);
    }
  }
}

/** Behind `/v1/`. */
const V1_END = 4;

interface GatewayPath {
  readonly accountId: string;
  readonly gatewayId: string;
  /** Null on the universal endpoint, which names its providers in the body. */
  readonly provider: string | null;
  /** As sent, without the leading slash. */
  readonly path: string;
}

/** Account, gateway and provider are decoded; the rest of the path is forwarded as it was sent. */
function parseGatewayPath(context: Pick<RequestContext, "path" | "errorDialect">): GatewayPath | DoorPath {
  const { path } = context;
  if (path.startsWith("/accounts/") || path.startsWith("/client/")) {
    context.errorDialect = "openai";
    return parseAccountDoor(path);
  }
  // The first segment is `v1` or `v1beta`, but may be written with escapes (`v%31`).
  const start = endOfSegment(path, 1) + 1;
  if (start !== V1_END && decodePath(path.slice(1, start - 1)) === "v1beta") {
    context.errorDialect = "gemini";
    return parseGoogleDoor(path.slice(start));
  }
  const accountEnd = endOfSegment(path, start);
  const accountId = decodePath(path.slice(start, accountEnd));
  if (DOOR_WORDS.has(accountId)) {
    // For a path that is none; the path of an endpoint decides by itself.
    context.errorDialect = "openai";
    return parseBareDoor(path.slice(start));
  }
  const gatewayEnd = endOfSegment(path, accountEnd + 1);
  const gatewayId = decodePath(path.slice(accountEnd + 1, gatewayEnd));
  if (accountId === "" || gatewayId === "") {
    throw new SignalboxError("gateway_not_found", { message: `Gateway not found. ${KNOWN_PATHS}` });
  }
  if (gatewayEnd + 1 >= path.length) return { accountId, gatewayId, provider: null, path: "" };
  const providerEnd = endOfSegment(path, gatewayEnd + 1);
  const rest = path.slice(providerEnd + 1);
  checkProviderPath(rest);
  const provider = decodePath(path.slice(gatewayEnd + 1, providerEnd));
  if (provider === COMPAT) return parseCompatDoor(accountId, gatewayId, rest);
  return { accountId, gatewayId, provider, path: rest };
}

function endOfSegment(path: string, from: number): number {
  const end = path.indexOf("/", from);
  return end === -1 ? path.length : end;
}

function isSmall(request: HttpRequest): boolean {
  const length = request.headers["content-length"];
  return length === undefined ? !hasBody(request) : Number(length) <= SKIPPED_BODY_BYTES;
}
