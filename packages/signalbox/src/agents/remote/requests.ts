/**
 * HTTP requests and method calls to instances of other nodes. Access was checked by the node that received the request; the owner checks what depends
 * on the instance, and runs it.
 *
 * Invariants:
 * 1. What arrives over HTTP cannot look like a request of another node: those arrive over links, which only nodes with the cluster's secret open.
 * 2. A node runs a request of another node itself or refuses it; it never passes it on.
 * 3. A request that was sent to a node that was lost is sent again only if its method is GET or HEAD.
 */
import { deserialize, serialize } from "node:v8";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import { decodePacket, encodePacket, PacketError } from "../../engines/node-link/index.ts";
import type { AccessLevel } from "../doors/access.ts";
import type { FetchCall, InstanceCalls, MethodCall } from "../doors/agent-calls.ts";
import type {
  CallWork,
  InstanceRequests,
  LocalRequests,
  RequestAnswer,
  RequestWork,
} from "../doors/instance-requests.ts";
import type { HttpResponse } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { InstanceClasses } from "../instance/instance-classes.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import { findCallable } from "../instance/method-call.ts";
import type { NodeInc } from "../../core/node-inc.ts";
import type { Placement } from "../placement/placement.ts";
import { encodeFailure, throwCarried } from "./carried-error.ts";
import { openExchange } from "./exchange.ts";
import { clientGone, explainFailure } from "./explain-failure.ts";
import type { ExchangeServer } from "./serve-exchanges.ts";
import { type CarriedRequest, toCarriedRequest, toReply, toRequest, toResponse } from "./web-message.ts";

const REQUEST = "agents.request";
const FETCH = "agents.fetch";
const CALL = "agents.call";
const RESULT = 1;

/** As JSON. */
interface RequestHead {
  readonly ref: InstanceRef;
  readonly level: AccessLevel;
  readonly isStranger: boolean;
  readonly label: string;
  readonly hasBody: boolean;
  readonly request: CarriedRequest;
}

interface FetchHead {
  readonly ref: InstanceRef;
  readonly callers: readonly string[];
  readonly isReadonly: boolean;
  readonly traceparent?: string | undefined;
  readonly request: CarriedRequest;
}

/** The call of another agent, or of a client with access. */
interface CallHead {
  readonly ref: InstanceRef;
  readonly method: string;
  readonly caller:
    | {
        readonly callers: readonly string[];
        readonly isReadonly: boolean;
        readonly traceparent?: string | undefined;
      }
    | { readonly level: AccessLevel; readonly isStranger: boolean; readonly request: CarriedRequest };
}

export interface RequestParts {
  readonly network: NodeNetwork;
  readonly classes: InstanceClasses;
  /** Run calls and requests on this node. */
  readonly calls: InstanceCalls;
  readonly requests: LocalRequests;
}

export class ClusterRequests implements InstanceRequests, InstanceCalls {
  readonly #parts: RequestParts & { readonly placement: Placement };

  constructor(parts: RequestParts & { readonly placement: Placement }) {
    this.#parts = parts;
  }

  request(work: RequestWork, client: HttpResponse): Promise<RequestAnswer> {
    const { network, placement, requests } = this.#parts;
    const signal = signalOf(client);
    const { request, access, label, body, props } = work;
    const ref = refOf(work);
    const isRepeatable = isSafe(request);
    const { level, isStranger } = access;
    const reached = placement.reach<RequestAnswer>({
      ref,
      signal,
      here: () => requests.request(work).catch(explain(isRepeatable)),
      there: async (node) => {
        const head: RequestHead = {
          ref,
          level,
          isStranger,
          label,
          hasBody: body !== undefined,
          request: toCarriedRequest(request),
        };
        const exchange = { name: REQUEST, head, attachment: pack(props), body: body ?? null, signal };
        const answer = await openExchange(network, node, exchange).catch(explain(isRepeatable));
        return { response: toResponse(answer), release: undefined };
      },
    });
    return reached.catch((error: unknown) => {
      throw signal.aborted ? clientGone(error) : error;
    });
  }

  call(work: CallWork): Promise<string | undefined> {
    const { level, isStranger } = work.access;
    const ref = refOf(work);
    return this.#parts.placement.reach<string | undefined>({
      ref,
      here: () => this.#parts.requests.call(work).catch(explain(false)),
      there: (node) => {
        const request = toCarriedRequest(work.origin.request);
        return this.#send(
          node,
          { ref, method: work.method, caller: { level, isStranger, request } },
          work.args,
        );
      },
    });
  }

  callMethod(ref: InstanceRef, call: MethodCall): Promise<string | undefined> {
    const { method, args, callers, isReadonly, traceparent } = call;
    return this.#parts.placement.reach<string | undefined>({
      ref,
      here: () => this.#parts.calls.callMethod(ref, call).catch(explain(false)),
      there: (node) => this.#send(node, { ref, method, caller: { callers, isReadonly, traceparent } }, args),
    });
  }

  async fetch(ref: InstanceRef, call: FetchCall): Promise<Response> {
    const { network, placement, calls } = this.#parts;
    const { request, callers, isReadonly, traceparent } = call;
    // Read once: the request may have to be sent to a second node.
    const body = request.body === null ? null : Buffer.from(await request.arrayBuffer());
    const isRepeatable = isSafe(request);
    const carried = toCarriedRequest(request);
    return placement.reach<Response>({
      ref,
      signal: request.signal,
      here: () =>
        calls
          .fetch(ref, { ...call, request: body === null ? request : toRequest(carried, body) })
          .catch(explain(isRepeatable)),
      there: async (node) => {
        const head: FetchHead = { ref, callers, isReadonly, traceparent, request: carried };
        const exchange = { name: FETCH, head, body, signal: request.signal };
        return toResponse(await openExchange(network, node, exchange).catch(explain(isRepeatable)));
      },
    });
  }

  async #send(node: NodeInc, head: CallHead, args: readonly unknown[]): Promise<string | undefined> {
    const payload = encodePacket(0, [JSON.stringify(head), JSON.stringify(args)]);
    try {
      const packet = decodePacket(await this.#parts.network.call(node, CALL, payload));
      throwCarried(packet);
      if (packet.kind !== RESULT) throw new PacketError("not a result");
      return packet.texts[0] ?? undefined;
    } catch (error) {
      throw explainFailure(error, false);
    }
  }
}

/** Runs what other nodes send to instances of this one. */
export function serveRequests(parts: RequestParts, exchanges: ExchangeServer): void {
  const { network, calls, classes, requests } = parts;
  exchanges.serve(REQUEST, async ({ head, attachment, body }) => {
    const { ref, level, isStranger, label, hasBody, request } = head as RequestHead;
    const { response, release } = await requests.request({
      target: { definition: definitionOf(classes, ref), name: ref.name },
      access: { account: ref.account, level, isStranger },
      request: toRequest(request, body),
      body: hasBody ? body : undefined,
      props: unpack(attachment),
      label,
    });
    return toReply(response, release);
  });
  exchanges.serve(FETCH, async ({ head, body }) => {
    const { ref, callers, isReadonly, traceparent, request } = head as FetchHead;
    const call = { callers, isReadonly, traceparent, request: toRequest(request, body) };
    return toReply(await calls.fetch(ref, { kind: "fetch", ...call }));
  });
  network.serve(CALL, async (payload) => {
    try {
      const { texts } = decodePacket(payload);
      const head = JSON.parse(texts[0] ?? "") as CallHead;
      const args = JSON.parse(texts[1] ?? "") as unknown[];
      return encodePacket(RESULT, [(await runCarried(parts, head, args)) ?? null]);
    } catch (error) {
      return encodeFailure(error);
    }
  });
}

function runCarried(
  { calls, classes, requests }: RequestParts,
  { ref, method, caller }: CallHead,
  args: readonly unknown[],
): Promise<string | undefined> {
  if ("callers" in caller) return calls.callMethod(ref, { kind: "method", method, args, ...caller });
  const definition = definitionOf(classes, ref);
  const { level, isStranger, request } = caller;
  return requests.call({
    target: { definition, name: ref.name },
    access: { account: ref.account, level, isStranger },
    method,
    args,
    origin: new CarriedOrigin(request),
    isConcurrent: findCallable(definition, method).concurrent,
  });
}

/** Few methods read the request, so it is converted on demand. */
class CarriedOrigin {
  readonly #carried: CarriedRequest;
  #request: Request | undefined;

  constructor(carried: CarriedRequest) {
    this.#carried = carried;
  }

  get request(): Request {
    this.#request ??= toRequest(this.#carried, NO_BODY);
    return this.#request;
  }
}

const NO_BODY = Buffer.from("");

/** Nodes of two versions may have different agents. */
function definitionOf({ agents }: InstanceClasses, { agent }: InstanceRef): AgentDefinition {
  const definition = agents.get(agent);
  if (definition === undefined) throw new SignalboxError("agent_not_found");
  return definition;
}

function refOf({ target, access }: RequestWork | CallWork): InstanceRef {
  return { account: access.account, agent: target.definition.kebab, name: target.name };
}

/** Aborts when the client disconnects. */
function signalOf(client: HttpResponse): AbortSignal {
  const controller = new AbortController();
  client.once("close", () => controller.abort());
  return controller.signal;
}

function isSafe({ method }: Request): boolean {
  return method === "GET" || method === "HEAD";
}

function explain(isRepeatable: boolean): (error: unknown) => never {
  return (error) => {
    throw explainFailure(error, isRepeatable);
  };
}

/** What `authorize` found out reaches an agent on another node as a structured clone, or as JSON if it has no clone. */
function pack(props: unknown): Uint8Array | undefined {
  if (props === undefined) return undefined;
  try {
    return serialize(props);
  } catch {
    return serialize(JSON.parse(JSON.stringify(props) ?? "null"));
  }
}

function unpack(attachment: Buffer): unknown {
  return attachment.length === 0 ? undefined : (deserialize(attachment) as unknown);
}
