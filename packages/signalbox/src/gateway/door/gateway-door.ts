/**
 * The entrance of the data plane, `/v1/{account_id}/{gateway_id}/{provider}/{path}`. The order of work is part of the contract: path →
 * gateway → token → provider → body → limits → cache → upstream. Everything up to the token is decided from the head of the request, so
 * a refused caller costs no body, no upstream request and no log row.
 */
import type { Duplex } from "node:stream";
import { DOOR_WORDS, SignalboxError } from "@signalbox/protocol";
import type { Authenticator } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import { overloaded } from "../../core/overload.ts";
import type { SharedPlaces } from "../../core/shared-pool.ts";
import {
  type BodyLimits,
  hasBody,
  type HttpRequest,
  type HttpResponse,
  type MemoryBudget,
  type MemoryShare,
} from "../../engines/http-server/index.ts";
import { NO_BODY, type RequestBody } from "../../engines/relay/index.ts";
import type { Area } from "../../http/area.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { toTraceparent } from "../../telemetry/trace-context.ts";
import type { CallRunner, PlannedCall } from "../call/call-runner.ts";
import { type Caller, holderOf, identifyCaller } from "../keys/caller-token.ts";
import { requireAllowedSteps, stampOptions } from "../keys/policy-use.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { ModelList } from "./model-list.ts";
import type { ModelNames } from "../models/model-names.ts";
import {
  checkProviderPath,
  decodePath,
  readCallOptions,
  readForwardedHeaders,
  refuseOwnTokenInTarget,
} from "../plan/forwarded-request.ts";
import { malformed } from "../step/malformed.ts";
import { planStep, type StepParts } from "../plan/plan-step.ts";
import { parseUniversalSteps } from "../plan/universal-steps.ts";
import type { RouteResolver } from "../routes/resolve-route.ts";
import { planUniversalRoute } from "../routes/universal-route.ts";
import { orderSteps, type StepOrderParts } from "../routes/order-steps.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import { toBodyError } from "./body-failure.ts";
import {
  ACCOUNT_DOORS,
  COMPAT,
  type DoorPath,
  parseAccountDoor,
  parseBareDoor,
  parseCompatDoor,
} from "./door-path.ts";
import { UnifiedDoor } from "./unified-door.ts";

export interface GatewayDoorParts extends StepParts {
  readonly gateways: Gateways;
  readonly authenticator: Authenticator;
  readonly metrics: GatewayMetrics;
  readonly bodyLimits: Required<Omit<BodyLimits, "share">>;
  readonly memory: MemoryBudget;
  /** Calls under way. */
  readonly calls: SharedPlaces;
  readonly runner: CallRunner;
  readonly clock: Clock;
  readonly modelNames: ModelNames;
  readonly modelList: ModelList;
  readonly stepOrder: StepOrderParts;
  readonly routes: RouteResolver;
  /** Loads the part that serves WebSockets. */
  readonly openRealtime: () => Promise<RealtimeSockets>;
}

/** Serves WebSockets. */
export interface RealtimeSockets {
  upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void>;
  close(): void;
}

/** The body of a refused request up to this size is read and dropped to keep the connection; after a larger one it is closed. */
const SKIPPED_BODY_BYTES = 64 * 1024;

/** One request, as the listener passes it on. */
interface Incoming {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly context: RequestContext;
}

type CallPlan = Pick<
  PlannedCall,
  "options" | "steps" | "showsStep" | "moreSteps" | "routeHeaders" | "budgets"
>;

export class GatewayDoor implements Area {
  readonly name = "gateway";
  readonly segments = ["v1"];
  readonly dialect = "gateway";
  readonly isForeign = true;
  readonly guest = { segments: ["accounts", "client"], path: ACCOUNT_DOORS };
  readonly #parts: GatewayDoorParts;
  readonly #unified: UnifiedDoor;
  #realtime: Promise<RealtimeSockets> | undefined;

  constructor(parts: GatewayDoorParts) {
    this.#parts = parts;
    this.#unified = new UnifiedDoor(parts);
  }

  /** The usual call creates one promise, which waits for its body: `async` functions here cost 3 % of a JSON call on 32 connections, 6 % on one. */
  handle(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void> {
    const startedAt = performance.now();
    const incoming: Incoming = { request, response, context };
    try {
      // TRACE would send the caller's headers back (RFC 9110, section 9.3.8); no provider uses it.
      if (request.method === "TRACE") throw new SignalboxError("method_not_allowed");
      const path = parseGatewayPath(context.path);
      if ("endpoint" in path) return this.#serveUnified(path, incoming, startedAt);
      const gateway = this.#parts.gateways.find(path.accountId, path.gatewayId);
      if (gateway === undefined) throw new SignalboxError("gateway_not_found");
      const caller = identifyCaller(this.#parts.authenticator, gateway, request, context.query);
      const holder = holderOf(caller, gateway);
      if (!context.memory.occupy(this.#parts.calls.shareOf(holder))) throw overloaded();
      const memory = this.#parts.memory.shareOf(holder);
      const policy = caller.token?.policy ?? null;
      const run = ({ options, steps, showsStep, moreSteps, routeHeaders, budgets }: CallPlan) => {
        if (policy !== null) requireAllowedSteps(policy, steps);
        return this.#parts.runner.run({
          options,
          steps,
          showsStep,
          moreSteps,
          routeHeaders,
          budgets,
          gateway,
          request,
          response,
          requestId: context.id,
          errorDialect: "gateway",
          tokenId: caller.tokenId,
          token: caller.token,
          startedAt,
          memory,
        });
      };
      return path.provider === null
        ? this.#serveUniversal(gateway, caller, incoming, memory, run)
        : this.#servePlain(gateway, caller, path.provider, path.path, incoming, memory, run);
    } catch (error) {
      throw this.#refused(incoming, error);
    }
  }

  /** Loaded with the first one: most installations have no realtime sessions. */
  async upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void> {
    this.#realtime ??= this.#parts.openRealtime();
    await (await this.#realtime).upgrade(request, socket, head, context);
  }

  /** Closes all WebSockets. */
  async closeSockets(): Promise<void> {
    (await this.#realtime)?.close();
  }

  async #serveUnified(path: DoorPath, incoming: Incoming, startedAt: number): Promise<void> {
    const traceparent = traceparentOf(incoming.request, incoming.context);
    try {
      await this.#unified.handle({ path, ...incoming, startedAt, traceparent });
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

  #servePlain(
    gateway: Gateway,
    caller: Caller,
    slug: string,
    path: string,
    incoming: Incoming,
    memory: MemoryShare,
    run: (plan: CallPlan) => void | Promise<void>,
  ): void | Promise<void> {
    const { request, response, context } = incoming;
    const { providers, authenticator, bodyLimits, runner } = this.#parts;
    const provider = providers.find(gateway.accountId, slug);
    if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
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
        gateway,
        provider,
        method: request.method ?? "GET",
        path,
        query: caller.query,
        forwarded,
        traceparent: traceparentOf(request, context),
        contentType: request.headers["content-type"],
        isEncoded: (request.headers["content-encoding"] ?? "identity").toLowerCase() !== "identity",
        body,
        options,
        translation: null,
        facts: null,
        isAuthenticated: caller.isAuthenticated,
      });
      return run({ options, steps: [step], showsStep: false });
    };
    if (!hasBody(request)) return start(NO_BODY);
    return new Promise((resolve, reject) => {
      const refuse = (error: unknown) => reject(this.#refused(incoming, error));
      let isRead = false;
      context.receiveBody(
        { ...bodyLimits, share: memory },
        {
          onBody(body) {
            isRead = true;
            try {
              const running = start(body);
              if (running instanceof Promise) running.then(resolve, refuse);
              else resolve();
            } catch (error) {
              refuse(error);
            }
          },
          onFailure(failure) {
            const error = toBodyError(failure, bodyLimits.maxBytes);
            // A streamed body that exceeds its limit ends the call that is under way.
            if (isRead) runner.refuse(response, error);
            else refuse(error);
          },
        },
      );
    });
  }

  async #serveUniversal(
    gateway: Gateway,
    caller: Caller,
    incoming: Incoming,
    memory: MemoryShare,
    run: (plan: CallPlan) => void | Promise<void>,
  ): Promise<void> {
    const { request, context } = incoming;
    try {
      if (request.method !== "POST") {
        throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
      }
      const options = stampOptions(caller.token?.policy ?? null, readCallOptions(request.rawHeaders));
      const body = await readWholeBody(request, context, this.#parts.bodyLimits.keepBytes, memory);
      const common = {
        gateway,
        options,
        traceparent: traceparentOf(request, context),
        isAuthenticated: caller.isAuthenticated,
        holdMemory: (bytes: number) => context.memory.hold(memory, bytes),
      };
      const routed = planUniversalRoute(this.#parts.routes, this.#parts, {
        ...common,
        bytes: body,
        request,
        caller,
      });
      if (routed !== null) {
        await run({ options, showsStep: true, ...(routed instanceof Promise ? await routed : routed) });
        return;
      }
      const call = parseUniversalSteps(body, common, this.#parts);
      await run({
        options: call.options,
        steps: orderSteps(call.steps, gateway, options, this.#parts.stepOrder),
        showsStep: true,
      });
    } catch (error) {
      throw this.#refused(incoming, error);
    }
  }
}

interface GatewayPath {
  readonly accountId: string;
  readonly gatewayId: string;
  /** Null on the universal endpoint, which names its providers in the body. */
  readonly provider: string | null;
  /** As sent, without the leading slash. */
  readonly path: string;
}

/** Account, gateway and provider are decoded; the rest of the path is forwarded as it was sent. */
function parseGatewayPath(path: string): GatewayPath | DoorPath {
  if (path.startsWith("/accounts/") || path.startsWith("/client/")) return parseAccountDoor(path);
  // The first segment is `v1`, but may be written with escapes (`v%31`).
  const start = endOfSegment(path, 1) + 1;
  const accountEnd = endOfSegment(path, start);
  const accountId = decodePath(path.slice(start, accountEnd));
  if (DOOR_WORDS.has(accountId)) return parseBareDoor(path.slice(start));
  const gatewayEnd = endOfSegment(path, accountEnd + 1);
  const gatewayId = decodePath(path.slice(accountEnd + 1, gatewayEnd));
  if (accountId === "" || gatewayId === "") throw new SignalboxError("gateway_not_found");
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

/** Reads the body of the universal endpoint, which must fit in memory. */
async function readWholeBody(
  request: HttpRequest,
  context: RequestContext,
  keepBytes: number,
  share: MemoryShare,
): Promise<Buffer> {
  if (!hasBody(request)) throw malformed("The body must be an array of steps");
  const body = await new Promise<RequestBody>((resolve, reject) => {
    context.receiveBody(
      { maxBytes: keepBytes, share },
      { onBody: resolve, onFailure: (failure) => reject(toBodyError(failure, keepBytes)) },
    );
  });
  if (body.kind !== "whole") throw malformed("The body must be an array of steps");
  // The bytes of each step are serialised again, so they are in memory twice.
  if (!context.memory.hold(share, body.bytes.length)) throw toBodyError("no_room", keepBytes);
  return body.bytes;
}

/** Continues the caller's trace with the span of this request as the parent; null when the caller sent no trace. */
function traceparentOf(request: HttpRequest, context: RequestContext): string | null {
  return request.headers["traceparent"] === undefined ? null : toTraceparent(context.trace);
}

function isSmall(request: HttpRequest): boolean {
  const length = request.headers["content-length"];
  return length === undefined ? !hasBody(request) : Number(length) <= SKIPPED_BODY_BYTES;
}
