/**
 * Management of instances at any node. Credential, permission and input are checked by the node that received the request; the handler of the route
 * runs at the node that owns the instance.
 */
import { Readable } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { Reply, Route } from "../../http/route.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import {
  type InstanceRequest,
  type InstanceRoute,
  type RefOf,
  toRoute,
} from "../management/instance-route.ts";
import type { Placement } from "../placement/placement.ts";
import { type ActivityTails, endWhenMoved } from "./activity-tails.ts";
import { openExchange } from "./exchange.ts";
import { clientGone, explainFailure } from "./explain-failure.ts";
import type { ExchangeReply, ExchangeServer } from "./serve-exchanges.ts";

const MANAGE = "agents.manage";
const EVENT_STREAM = "text/event-stream";

/** As JSON. */
interface RequestHead extends Omit<InstanceRequest, "signal"> {
  /** Of the operation. */
  readonly name: string;
}

/** A route or other work on one instance. */
interface Operation {
  /** Method and path template of a route. */
  readonly name: string;
  /** It only reads. */
  readonly isRepeatable: boolean;
  run(request: InstanceRequest): Reply | Promise<Reply>;
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
  readonly #operations = new Map<string, Operation>();

  constructor(parts: ManagementParts) {
    this.#parts = parts;
  }

  /** The route with a handler that runs where the instance is. */
  atOwner(route: InstanceRoute, refOf: RefOf): Route {
    const operation: Operation = {
      name: `${route.method} ${route.path}`,
      isRepeatable: route.method === "GET",
      run: (request) => route.handler(request),
    };
    this.#operations.set(operation.name, operation);
    return toRoute(route, refOf, (request) => this.#handle(operation, request));
  }

  workAtOwner<Input, Result>(
    name: string,
    work: (ref: InstanceRef, input: Input) => Promise<Result>,
  ): (ref: InstanceRef, input: Input, signal: AbortSignal) => Promise<Result> {
    const operation: Operation = {
      name,
      isRepeatable: false,
      run: async ({ ref, body }) => ({ result: await work(ref, body as Input) }),
    };
    this.#operations.set(name, operation);
    return async (ref, input, signal) => {
      const request = { ref, params: {}, query: {}, body: input, accept: undefined, signal };
      const { result, resultJson } = await this.#handle(operation, request);
      return (resultJson === undefined ? result : JSON.parse(resultJson)) as Result;
    };
  }

  serve(exchanges: ExchangeServer): void {
    exchanges.serve(MANAGE, async ({ head, signal }) => {
      const { name, ...carried } = head as RequestHead;
      const operation = this.#operations.get(name);
      // Nodes of two versions may have different routes.
      if (operation === undefined) throw new SignalboxError("not_found");
      const reply = await operation.run({ ...carried, signal });
      return toExchangeReply(this.#whileHere(reply, carried.ref));
    });
  }

  async #handle(operation: Operation, request: InstanceRequest): Promise<Reply> {
    const { signal } = request;
    const reply = await this.#reach(operation, request).catch((error: unknown) => {
      throw signal.aborted ? clientGone(error) : error;
    });
    if (!isEventStream(reply)) return reply;
    const body = this.#parts.tails.follow(reply.raw.body, async (closing) => {
      const next = await this.#reach(operation, { ...request, signal: closing });
      if (!isEventStream(next)) throw new Error("the other node sent no stream of events");
      return next.raw.body;
    });
    return { ...reply, raw: { ...reply.raw, body } };
  }

  #reach(operation: Operation, request: InstanceRequest): Promise<Reply> {
    const { network, placement } = this.#parts;
    const { ref, signal } = request;
    const explain = (error: unknown): never => {
      throw explainFailure(error, operation.isRepeatable);
    };
    const here = async () => this.#whileHere(await operation.run(request), ref);
    return placement.reach<Reply>({
      ref,
      signal,
      here: () => here().catch(explain),
      there: async (node) => {
        const { params, query, body, accept } = request;
        const head: RequestHead = { name: operation.name, ref, params, query, body, accept };
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
