/**
 * The data plane's front door, `/v1/…`. The order of work is part of the contract: path → gateway → token → provider → body → limits →
 * cache → upstream. Up to the token everything is decided from the request's head, so a refused caller costs no body, no upstream
 * contact and no log row.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import type { Authenticator } from "../../accounts/index.ts";
import type { Area } from "../../http/area.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { toTraceparent } from "../../telemetry/trace-context.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import { NO_BODY, type RequestBody } from "../upstream/request-body.ts";
import { authorise } from "./authorise.ts";
import type { Call } from "./call.ts";
import { readCallHeaders } from "./call-headers.ts";
import type { CallRunner } from "./call-runner.ts";
import { type GatewayPath, parseGatewayPath } from "./gateway-path.ts";
import { malformed } from "./inspect-body.ts";
import { planStep, type StepParts } from "./plan-step.ts";
import { type BodyLimits, hasBody, readRequestBody } from "./read-request-body.ts";
import { parseUniversalSteps } from "./universal-steps.ts";

export interface GatewayDoorParts extends StepParts {
  readonly gateways: Gateways;
  readonly authenticator: Authenticator;
  readonly metrics: GatewayMetrics;
  readonly bodyLimits: BodyLimits;
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

export class GatewayDoor implements Area {
  readonly name = "gateway";
  readonly segments = ["v1"];
  readonly dialect = "gateway";
  readonly #parts: GatewayDoorParts;

  constructor(parts: GatewayDoorParts) {
    this.#parts = parts;
  }

  async handle(request: IncomingMessage, response: ServerResponse, context: RequestContext): Promise<void> {
    try {
      const admitted = this.#admit(request, context);
      await (admitted.path.provider === null
        ? this.#serveUniversal(admitted, request, response, context)
        : this.#servePlain(admitted, admitted.path.provider, request, response, context));
    } catch (error) {
      if (error instanceof SignalboxError) this.#parts.metrics.refused(error.id);
      if (!request.complete && !isSmall(request)) response.shouldKeepAlive = false;
      throw error;
    }
  }

  #admit(request: IncomingMessage, context: RequestContext): Admitted {
    const startedAt = performance.now();
    const path = parseGatewayPath(context.path);
    const gateway = this.#parts.gateways.find(path.accountId, path.gatewayId);
    if (gateway === undefined) throw new SignalboxError("gateway_not_found");
    const tokenId = gateway.settings.authentication
      ? authorise(this.#parts.authenticator, gateway, request.headers)
      : null;
    return { gateway, path, tokenId, startedAt };
  }

  async #servePlain(
    { gateway, path, tokenId, startedAt }: Admitted,
    slug: string,
    request: IncomingMessage,
    response: ServerResponse,
    context: RequestContext,
  ): Promise<void> {
    const { providers, bodyLimits } = this.#parts;
    const provider = providers.find(gateway.accountId, slug);
    if (provider === undefined) throw new SignalboxError("gateway_unknown_provider");
    const headers = readCallHeaders(request.rawHeaders, request.headers.connection, provider);
    let call: Call | null = null;
    const body = hasBody(request)
      ? await readRequestBody(request, bodyLimits, (error) => call?.refuse(error))
      : NO_BODY;
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
    call = await this.#parts.runner.run({
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

  async #serveUniversal(
    { gateway, tokenId, startedAt }: Admitted,
    request: IncomingMessage,
    response: ServerResponse,
    context: RequestContext,
  ): Promise<void> {
    if (request.method !== "POST") {
      throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
    }
    const { bodyLimits } = this.#parts;
    const { options } = readCallHeaders(request.rawHeaders, undefined, NO_CREDENTIALS);
    // The steps must be in memory to be tried one after the other.
    const { replayBytes } = bodyLimits;
    const body: RequestBody = await readRequestBody(request, { replayBytes, maxBytes: replayBytes }, ignore);
    if (body.kind !== "whole") throw malformed("The body must be an array of steps");
    const steps = parseUniversalSteps(body.bytes, gateway, this.#parts, options, traceLine(request, context));
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
  }
}

const NO_CREDENTIALS = { credentialHeaders: [] };

function ignore(): void {}

/** Continues the caller's trace, with our span as the parent; a call without one stays without. */
function traceLine(request: IncomingMessage, context: RequestContext): string {
  return request.headers["traceparent"] === undefined
    ? ""
    : `traceparent: ${toTraceparent(context.trace)}\r\n`;
}

function isSmall(request: IncomingMessage): boolean {
  const length = request.headers["content-length"];
  return length === undefined ? !hasBody(request) : Number(length) <= SKIPPED_BODY_BYTES;
}
