/** A management request, as handlers receive it. */
import type { IncomingHttpHeaders } from "node:http";
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { requireStorable } from "../core/storable-text.ts";
import type { Principal } from "../accounts/index.ts";
import type { RequestContext } from "./request-context.ts";
import type { RouteRequest } from "./route.ts";

export interface ManagedRequestParts {
  readonly context: RequestContext;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly params: Record<string, string>;
  readonly principal: Principal;
  readonly maxBodyBytes: number;
  readonly trafficOrigin: (request: HttpRequest) => string;
}

/** Expensive members are created on first use. */
export class ManagedRequest implements RouteRequest {
  readonly id: string;
  readonly params: Record<string, string>;
  readonly principal: Principal;
  query: unknown = undefined;
  body: unknown = undefined;
  readonly #parts: ManagedRequestParts;
  /** The raw body, if the handler has read it. */
  bodyRead: Buffer | undefined = undefined;
  #rawQuery: URLSearchParams | undefined;
  #controller: AbortController | undefined;

  constructor(parts: ManagedRequestParts) {
    this.id = parts.context.id;
    this.params = parts.params;
    this.principal = parts.principal;
    this.#parts = parts;
  }

  get maxBodyBytes(): number {
    return this.#parts.maxBodyBytes;
  }

  /** Returns the same request without query and body, for the handler of a read. */
  toRead(params: Record<string, string>): ManagedRequest {
    const { context, request, response, principal, maxBodyBytes, trafficOrigin } = this.#parts;
    const read = new ManagedRequest({
      context,
      request,
      response,
      params,
      principal,
      maxBodyBytes,
      trafficOrigin,
    });
    read.#rawQuery = new URLSearchParams();
    return read;
  }

  get headers(): IncomingHttpHeaders {
    return this.#parts.request.headers;
  }

  get isHead(): boolean {
    return this.#parts.request.method === "HEAD";
  }

  get trafficOrigin(): string {
    return this.#parts.trafficOrigin(this.#parts.request);
  }

  get rawQuery(): URLSearchParams {
    this.#rawQuery ??= new URLSearchParams(this.#parts.context.query);
    return this.#rawQuery;
  }

  parameter(name: string): string | null {
    return this.rawQuery.get(name);
  }

  allowParameters(known: readonly string[]): void {
    for (const name of this.rawQuery.keys()) {
      if (known.includes(name)) continue;
      const allowed =
        known.length === 0 ? "this path has no parameters" : `known parameters: ${known.join(", ")}`;
      throw new SignalboxError("invalid_request", {
        message: `unknown parameter ${JSON.stringify(name)}; ${allowed}`,
      });
    }
  }

  /** Throws `invalid_request` if one of the parameters stands twice. */
  refuseRepeated(single: ReadonlySet<string>): void {
    const seen = new Set<string>();
    for (const name of this.rawQuery.keys()) {
      if (seen.has(name) && single.has(name)) {
        throw new SignalboxError("invalid_request", {
          message: `the parameter ${JSON.stringify(name)} may stand only once`,
        });
      }
      seen.add(name);
    }
  }

  /** Throws `invalid_request` for a value that PostgreSQL cannot compare. Filters by tags have errors of their own. */
  requireStorableQuery(): void {
    for (const [name, value] of this.rawQuery) if (name !== "tag") requireStorable(name, value);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const { response } = this.#parts;
      if (response.destroyed) controller.abort();
      response.once("close", () => {
        if (!response.writableFinished) controller.abort();
      });
    }
    return this.#controller.signal;
  }

  async readBody(): Promise<Buffer> {
    this.bodyRead = await this.#parts.context.readBody(this.#parts.maxBodyBytes);
    return this.bodyRead;
  }
}
