/**
 * Management of instances at any node. Credential, permission and input are checked by the node that received the request; the handler of the route
 * runs at the node that owns the instance.
 */
import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { Reply, Route, RouteRequest } from "../../http/route.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { Placement } from "../placement/placement.ts";
import { type ActivityTails, endWhenMoved } from "./activity-tails.ts";
import { openExchange } from "./exchange.ts";
import { clientGone, explainFailure } from "./sending.ts";
import type { ExchangeReply, ExchangeServer } from "./serve-exchanges.ts";

const MANAGE = "agents.manage";
const EVENT_STREAM = "text/event-stream";

/** As JSON. */
interface RequestHead {
  readonly ref: InstanceRef;
  /** Method and path template. */
  readonly route: string;
  readonly id: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly rawQuery: string;
  readonly body: unknown;
  readonly accept: string | undefined;
}

interface ReplyHead extends Omit<Reply, "result" | "raw"> {
  readonly resultJson: string;
  /** Type of the body, if the reply is no envelope. */
  readonly contentType: string | null;
}

export interface ManagementParts {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  readonly tails: ActivityTails;
}

export class ClusterManagement {
  readonly #parts: ManagementParts;
  readonly #handlers = new Map<string, Route["handler"]>();

  constructor(parts: ManagementParts) {
    this.#parts = parts;
  }

  /** The route with a handler that runs where the instance is. */
  atOwner(route: Route, refOf: (request: RouteRequest) => InstanceRef): Route {
    this.#handlers.set(nameOf(route), (request) => route.handler(request));
    return { ...route, handler: (request) => this.#handle(route, refOf(request), request) };
  }

  serve(exchanges: ExchangeServer): void {
    exchanges.serve(MANAGE, async ({ head, signal }) => {
      const { ref, route, ...carried } = head as RequestHead;
      const handler = this.#handlers.get(route);
      // Nodes of two versions may have different routes.
      if (handler === undefined) throw new SignalboxError("not_found");
      const reply = await handler(new CarriedRouteRequest(carried, signal));
      return toExchangeReply(this.#whileHere(reply, ref));
    });
  }

  async #handle(route: Route, ref: InstanceRef, request: RouteRequest): Promise<Reply> {
    const { signal } = request;
    const reply = await this.#reach(route, ref, request, signal).catch((error: unknown) => {
      throw signal.aborted ? clientGone(error) : error;
    });
    if (!isEventStream(reply)) return reply;
    const body = this.#parts.tails.follow(reply.raw.body, async (closing) => {
      const next = await this.#reach(route, ref, request, closing);
      if (!isEventStream(next)) throw new Error("the other node sent no stream of events");
      return next.raw.body;
    });
    return { ...reply, raw: { ...reply.raw, body } };
  }

  #reach(route: Route, ref: InstanceRef, request: RouteRequest, signal: AbortSignal): Promise<Reply> {
    const { network, placement } = this.#parts;
    const isRepeatable = route.method === "GET";
    const explain = (error: unknown): never => {
      throw explainFailure(error, isRepeatable);
    };
    const here = async () => this.#whileHere(await route.handler(request), ref);
    return placement.reach<Reply>({
      ref,
      signal,
      here: () => here().catch(explain),
      there: async (node) => {
        const head: RequestHead = {
          ref,
          route: nameOf(route),
          id: request.id,
          params: request.params,
          query: request.query,
          rawQuery: request.rawQuery.toString(),
          body: request.body,
          accept: request.headers.accept,
        };
        const answer = await openExchange(network, node, { name: MANAGE, head, body: null, signal }).catch(
          explain,
        );
        return toReply(answer.head as ReplyHead, answer.body);
      },
    });
  }

  /** A stream of events ends when the instance moves; the node of the reader opens another one. */
  #whileHere(reply: Reply, ref: InstanceRef): Reply {
    if (isEventStream(reply)) endWhenMoved(reply.raw.body, ref, this.#parts.placement);
    return reply;
  }
}

function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

function isEventStream(reply: Reply): reply is Reply & { raw: { contentType: string; body: Readable } } {
  return reply.raw?.contentType === EVENT_STREAM && reply.raw.body instanceof Readable;
}

function toExchangeReply({ result, raw, ...reply }: Reply): ExchangeReply {
  const resultJson = reply.resultJson ?? JSON.stringify(result ?? null);
  const head: ReplyHead = { ...reply, resultJson, contentType: raw?.contentType ?? null };
  if (raw === undefined) return { head, body: null };
  return { head, body: raw.body instanceof Readable ? raw.body : Readable.from([Buffer.from(raw.body)]) };
}

function toReply({ contentType, ...reply }: ReplyHead, body: Readable | null): Reply {
  return contentType === null || body === null ? reply : { ...reply, raw: { contentType, body } };
}

/** A request that another node has authorised and parsed. */
class CarriedRouteRequest implements RouteRequest {
  readonly id: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly rawQuery: URLSearchParams;
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;

  constructor(head: Omit<RequestHead, "ref" | "route">, signal: AbortSignal) {
    const { id, params, query, rawQuery, body, accept } = head;
    this.id = id;
    this.params = params;
    this.query = query;
    this.rawQuery = new URLSearchParams(rawQuery);
    this.body = body;
    this.headers = accept === undefined ? {} : { accept };
    this.signal = signal;
  }

  parameter(name: string): string | null {
    return this.rawQuery.get(name);
  }

  /** The node that received the request has refused unknown parameters. */
  allowParameters(): void {}

  get principal(): never {
    throw new Error("the node that received the request has checked its principal");
  }

  get trafficOrigin(): never {
    throw new Error("the node that received the request knows its address");
  }

  readBody(): Promise<Buffer> {
    return Promise.reject(new Error("the node that received the request has read its body"));
  }
}
