/**
 * The data plane's front door, `/v1/…`. The order of work is part of the contract: path → gateway → token → provider → body → limits →
 * cache → upstream. Up to the token everything is decided from the request's head, so a refused caller costs no body, no upstream
 * contact and no log row.
 */
import {
  type BodyLimits,
  hasBody,
  type HttpRequest,
  type HttpResponse,
} from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Authenticator } from "../../accounts/index.ts";
import type { Area } from "../../http/area.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { toTraceparent } from "../../telemetry/trace-context.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Provider } from "../providers/provider.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import { NO_BODY, type RequestBody } from "../../engines/relay/index.ts";
import { authorise } from "./authorise.ts";
import { toBodyError } from "./body-failure.ts";
import type { Call } from "./call.ts";
import { type CallHeaders, readCallHeaders, readCallOptions } from "./call-headers.ts";
import type { CallRunner } from "./call-runner.ts";
import { type GatewayPath, parseGatewayPath } from "./gateway-path.ts";
import { malformed } from "./inspect-body.ts";
import { refuseOwnTokenInTarget } from "./own-token.ts";
import { planStep, type StepParts } from "./plan-step.ts";
import { parseUniversalSteps } from "./universal-steps.ts";

export interface GatewayDoorParts extends StepParts {
  readonly gateways: Gateways;
  readonly authenticator: Authenticator;
  readonly metrics: GatewayMetrics;
  readonly bodyLimits: Required<BodyLimits>;
  readonly runner: CallRunner;
}

/** A refused request's body up to this size is read over to keep the connection; behind a larger one it is closed. */
const SKIPPED_BODY_BYTES = 64 * 1024;

/** A call that was let in, before its body has been read. */
interface Admitted {
  readonly gateway: Gateway;
  readonly path: GatewayPath;
  readonly tokenId: string | null;
  readonly startedAt: number;
}

/** What node:http and the listener know of a request. */
interface OpenCall {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly context: RequestContext;
}

export class GatewayDoor implements Area {
  readonly name = "gateway";
  readonly segments = ["v1"];
  readonly dialect = "gateway";
  readonly isForeign = true;
  readonly #parts: GatewayDoorParts;

  constructor(parts: GatewayDoorParts) {
    this.#parts = parts;
  }

  handle(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void> {
    const call: OpenCall = { request, response, context };
    try {
      const admitted = this.#admit(request, context);
      return admitted.path.provider === null
        ? this.#serveUniversal(admitted, call)
        : this.#servePlain(admitted, admitted.path.provider, call);
    } catch (error) {
      throw this.#refused(call, error);
    }
  }

  /** Notes a call that is turned away; returns the error, to be thrown on. */
  #refused({ request, response }: OpenCall, error: unknown): unknown {
    if (error instanceof SignalboxError) this.#parts.metrics.refused(error.id);
    if (!request.complete && !isSmall(request)) response.shouldKeepAlive = false;
    return error;
  }

  #admit(request: HttpRequest, context: RequestContext): Admitted {
    const startedAt = performance.now();
    // It would send the caller's headers back to whoever asks (RFC 9110, section 9.3.8); a provider has no use for it.
    if (request.method === "TRACE") throw new SignalboxError("method_not_allowed");
    const path = parseGatewayPath(context.path);
    const gateway = this.#parts.gateways.find(path.accountId, path.gatewayId);
    if (gateway === undefined) throw new SignalboxError("gateway_not_found");
    const tokenId = gateway.settings.authentication
      ? authorise(this.#parts.authenticator, gateway, request)
      : null;
    return { gateway, path, tokenId, startedAt };
  }

  /** The usual way, so there is no promise in it but the one that says how it ended. */
  #servePlain(admitted: Admitted, slug: string, call: OpenCall): void | Promise<void> {
    const { request } = call;
    const provider = this.#parts.providers.find(admitted.gateway.accountId, slug);
    if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
    const { authenticator } = this.#parts;
    refuseOwnTokenInTarget(authenticator, admitted.path.path, call.context.query);
    const headers = readCallHeaders(request.rawHeaders, request.headers.connection, provider, authenticator);
    if (!hasBody(request)) {
      const running = this.#sendPlain(admitted, provider, headers, call, NO_BODY);
      if (!(running instanceof Promise)) return undefined;
      return running.then(ignore, (error: unknown) => {
        throw this.#refused(call, error);
      });
    }
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(this.#refused(call, error));
      let sent: Call | null = null;
      let isRead = false;
      call.context.receiveBody(this.#parts.bodyLimits, {
        onBody: (body) => {
          isRead = true;
          try {
            const running = this.#sendPlain(admitted, provider, headers, call, body);
            if (running instanceof Promise) {
              running.then((later) => (sent = later)).then(() => resolve(), fail);
            } else {
              sent = running;
              resolve();
            }
          } catch (error) {
            fail(error);
          }
        },
        onFailure: (failure) => {
          const error = toBodyError(failure, this.#parts.bodyLimits.maxBytes);
          if (isRead) sent?.refuse(error);
          else fail(error);
        },
      });
    });
  }

  #sendPlain(
    { gateway, path, tokenId, startedAt }: Admitted,
    provider: Provider,
    headers: CallHeaders,
    { request, response, context }: OpenCall,
    body: RequestBody,
  ): Call | null | Promise<Call | null> {
    const step = planStep(this.#parts, {
      gateway,
      provider,
      method: request.method ?? "GET",
      path: path.path,
      query: context.query,
      headerLines: headers.lines + traceLine(request, context),
      credentialLines: headers.credentialLines,
      contentType: request.headers["content-type"],
      isEncoded: request.headers["content-encoding"] !== undefined,
      body,
      options: headers.options,
    });
    return this.#parts.runner.run({
      gateway,
      request,
      response,
      requestId: context.id,
      options: headers.options,
      steps: [step],
      showsStep: false,
      tokenId,
      startedAt,
    });
  }

  async #serveUniversal({ gateway, tokenId, startedAt }: Admitted, call: OpenCall): Promise<void> {
    const { request, response, context } = call;
    try {
      if (request.method !== "POST") {
        throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
      }
      const options = readCallOptions(request.rawHeaders);
      const steps = parseUniversalSteps(
        await readWholeBody(call, this.#parts.bodyLimits),
        gateway,
        this.#parts,
        options,
        traceLine(request, context),
      );
      await this.#parts.runner.run({
        gateway,
        request,
        response,
        requestId: context.id,
        options,
        steps,
        showsStep: true,
        tokenId,
        startedAt,
      });
    } catch (error) {
      throw this.#refused(call, error);
    }
  }
}

/** The steps must be in memory to be tried one after the other. */
async function readWholeBody({ request, context }: OpenCall, limits: Required<BodyLimits>): Promise<Buffer> {
  const { keepBytes, budget } = limits;
  if (!hasBody(request)) throw malformed("The body must be an array of steps");
  const body = await new Promise<RequestBody>((onBody, onFailure) => {
    context.receiveBody(
      { maxBytes: keepBytes, budget },
      { onBody, onFailure: (failure) => onFailure(toBodyError(failure, keepBytes)) },
    );
  });
  if (body.kind !== "whole") throw malformed("The body must be an array of steps");
  // Each step is written anew, so the bytes are there twice.
  if (!context.memory.hold(budget, body.bytes.length)) throw toBodyError("no_room", keepBytes);
  return body.bytes;
}

function ignore(): void {}

/** Continues the caller's trace, with our span as the parent; a call without one stays without. */
function traceLine(request: HttpRequest, context: RequestContext): string {
  return request.headers["traceparent"] === undefined
    ? ""
    : `traceparent: ${toTraceparent(context.trace)}\r\n`;
}

function isSmall(request: HttpRequest): boolean {
  const length = request.headers["content-length"];
  return length === undefined ? !hasBody(request) : Number(length) <= SKIPPED_BODY_BYTES;
}
