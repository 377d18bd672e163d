/** A request to one provider, before it is planned. */
import type { HttpRequest } from "../../engines/http-server/index.ts";
import type { RequestBody } from "../../engines/relay/index.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { toTraceparent } from "../../telemetry/trace-context.ts";
import type { Caller } from "../keys/caller-token.ts";
import type { Provider } from "../providers/provider.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { BodyFacts } from "../step/body-facts.ts";
import type { CallOptions } from "../step/call-options.ts";
import type { Translation } from "../step/translation.ts";
import type { ForwardedHeaders } from "./forwarded-request.ts";

/** What all steps of a call share. */
export interface StepContext {
  readonly gateway: Gateway;
  /** The caller has sent a valid token. */
  readonly isAuthenticated: boolean;
  /** Continues the caller's trace with the span of this request as the parent; null when the caller sent no trace. */
  readonly traceparent: string | null;
}

export interface StepRequest {
  readonly context: StepContext;
  readonly provider: Provider;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly forwarded: Pick<ForwardedHeaders, "headers" | "credential">;
  readonly contentType: string | undefined;
  /** The body is compressed. */
  readonly isEncoded?: boolean;
  readonly body: RequestBody;
  readonly options: CallOptions;
  /** Missing when client and provider speak the same dialect by themselves. */
  readonly translation?: Translation;
  /** Already read from the body; missing leaves it to `planStep`. */
  readonly facts?: BodyFacts | undefined;
}

interface Arrived {
  readonly gateway: Gateway;
  readonly caller: Pick<Caller, "isAuthenticated">;
  readonly request: HttpRequest;
  readonly context: RequestContext;
}

export function stepContextOf({ gateway, caller, request, context }: Arrived): StepContext {
  const traceparent = request.headers["traceparent"] === undefined ? null : toTraceparent(context.trace);
  return { gateway, isAuthenticated: caller.isAuthenticated, traceparent };
}
