/** A management request, as handlers receive it. */
import type { IncomingHttpHeaders } from "node:http";
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { Principal } from "../accounts/index.ts";
import type { RequestContext } from "./request-context.ts";
import type { RouteRequest } from "./route.ts";

/** Expensive members are created on first use. */
export class ManagedRequest implements RouteRequest {
  readonly id: string;
  readonly params: Record<string, string>;
  readonly principal: Principal;
  query: unknown = undefined;
  body: unknown = undefined;
  readonly #context: RequestContext;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  #rawQuery: URLSearchParams | undefined;
  readonly #maxBodyBytes: number;
  readonly #trafficOrigin: (request: HttpRequest) => string;
  #controller: AbortController | undefined;

  constructor(
    context: RequestContext,
    request: HttpRequest,
    response: HttpResponse,
    params: Record<string, string>,
    principal: Principal,
    maxBodyBytes: number,
    trafficOrigin: (request: HttpRequest) => string,
  ) {
    this.id = context.id;
    this.params = params;
    this.principal = principal;
    this.#context = context;
    this.#request = request;
    this.#response = response;
    this.#maxBodyBytes = maxBodyBytes;
    this.#trafficOrigin = trafficOrigin;
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers;
  }

  get trafficOrigin(): string {
    return this.#trafficOrigin(this.#request);
  }

  get rawQuery(): URLSearchParams {
    this.#rawQuery ??= new URLSearchParams(this.#context.query);
    return this.#rawQuery;
  }

  parameter(name: string): string | null {
    return this.rawQuery.get(name);
  }

  allowParameters(known: readonly string[]): void {
    const unknown = this.rawQuery.keys().find((name) => !known.includes(name));
    if (unknown === undefined) return;
    throw new SignalboxError("invalid_request", {
      message: `unknown parameter ${JSON.stringify(unknown)}; ${known.length === 0 ? "this path takes none" : `known are ${known.join(", ")}`}`,
    });
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const response = this.#response;
      if (response.destroyed) controller.abort();
      response.once("close", () => {
        if (!response.writableFinished) controller.abort();
      });
    }
    return this.#controller.signal;
  }

  readBody(): Promise<Buffer> {
    return this.#context.readBody(this.#maxBodyBytes);
  }
}
