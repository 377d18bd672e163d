/**
 * HTTP on `/agents/{agent}/{name}[/…]`: requests to the agent's `onRequest`, and method calls on the reserved sub-path `POST …/rpc/{method}`
 * with a JSON array of arguments.
 */
import type { HttpRequest, HttpResponse } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { SharedPlaces } from "../../core/shared-pool.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { type Access, type AccessOptions, findAccess, holderOf, passOn } from "./access.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Cors } from "./cors.ts";
import type { CreationOptions } from "./creation.ts";
import type { CallWork, InstanceRequests, RequestWork } from "./instance-requests.ts";
import { checkInstanceName } from "../instance/instance-ref.ts";
import { findCallable, publicMessage } from "../instance/method-call.ts";
import { sendWebResponse, toWebRequest } from "./web-request.ts";

export interface DoorOptions extends CreationOptions {
  readonly access: AccessOptions;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  /** Null when pages of other origins get no access. */
  readonly cors: Cors | null;
  readonly maxBodyBytes: number;
  readonly maxMessageBytes: number;
  readonly requests: InstanceRequests;
  /** Of requests and WebSockets, by account. */
  readonly places: SharedPlaces;
}

export interface AgentTarget {
  readonly definition: AgentDefinition;
  readonly name: string;
  /** Path segments after the name. */
  readonly rest: readonly string[];
}

/** The reserved sub-path of method calls. */
const RPC_SEGMENT = "rpc";

/** The agent and instance that a path names. Throws for unknown agents and invalid names. */
export function findTarget(
  definitions: ReadonlyMap<string, AgentDefinition>,
  context: RequestContext,
): AgentTarget {
  const [, agent = "", name, ...rest] = context.segments;
  const definition = definitions.get(agent);
  if (definition === undefined) throw new SignalboxError("agent_not_found");
  if (name === undefined || (name === "" && rest.length === 0)) {
    throw new SignalboxError("not_found", { message: "The path names no instance" });
  }
  return { definition, name: checkInstanceName(name), rest };
}

export async function handleHttp(
  options: DoorOptions,
  request: HttpRequest,
  response: HttpResponse,
  context: RequestContext,
): Promise<void> {
  if (options.cors?.begin(request, response) === true) return;
  const found = findAccess(options.access, request, context.query);
  const access = found instanceof Promise ? await found : found;
  if (!context.memory.occupy(options.places.shareOf(holderOf(access)))) throw overloaded();
  const { level, principal } = access;
  const target = findTarget(options.definitions, context);
  const method = request.method ?? "GET";
  const isCall = target.rest.length === 2 && target.rest[0] === RPC_SEGMENT;
  const isSafe = (method === "GET" || method === "HEAD") && !isCall;
  if (level === "read" && !isSafe) throw new SignalboxError("forbidden");
  if (!isCall && !target.definition.hasRequestHook) {
    throw new SignalboxError("not_found", { message: "The agent answers no HTTP requests" });
  }
  if (isCall) return handleCall(options, access, target, request, response, context);

  // The body is read before the turn starts, so that a slow upload does not delay other turns.
  const body = isSafe ? undefined : await context.readBody(options.maxBodyBytes);
  const passed = passOn(access, request.url ?? "/", options.access.mode === "public");
  const work: RequestWork = {
    target,
    access,
    request: toWebRequest(request, passed.target, {
      ...(body === undefined || body.length === 0 ? {} : { body }),
      ...passed.options,
    }),
    body,
    props: access.identity?.props,
    label: `${method} ${context.path}`,
  };
  const { response: answer, release } = await options.requests.request(work, response);
  let stopWatching: (() => void) | undefined;
  try {
    // The response may be an endless stream: its source is the agent's object, and it ends with the credential of the request.
    if (principal !== null && answer.body !== null)
      stopWatching = options.access.authenticator.watch(principal, () => response.destroy());
    await sendWebResponse(answer, response, method === "HEAD");
  } finally {
    stopWatching?.();
    release?.();
  }
}

async function handleCall(
  options: DoorOptions,
  access: Access,
  { definition, name, rest }: AgentTarget,
  request: HttpRequest,
  response: HttpResponse,
  context: RequestContext,
): Promise<void> {
  if (request.method !== "POST") {
    throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
  }
  const method = rest[1] ?? "";
  const args = parseArguments(await context.readBody(options.maxBodyBytes));
  const { streaming, concurrent } = findCallable(definition, method);
  if (streaming === true) {
    throw new SignalboxError("invalid_request", {
      message: `Method ${method} streams: call it over a WebSocket`,
    });
  }
  const work: CallWork = {
    target: { definition, name },
    access,
    method,
    args,
    origin: new CallOrigin(request, access, options.access.mode === "public"),
    isConcurrent: concurrent,
  };
  let result: string | undefined;
  try {
    result = await options.requests.call(work);
  } catch (error) {
    throw error instanceof SignalboxError
      ? error
      : new SignalboxError("agent_failed", { message: publicMessage(error), cause: error });
  }
  const body = `{"success":true,"errors":[],"messages":[],"result":${result ?? "null"}}`;
  response.writeHead(200, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

/** The request of a method call, as agents' code sees it. Few methods read it, so it is converted on demand. */
class CallOrigin {
  readonly #request: HttpRequest;
  readonly #access: Access;
  readonly #isPublic: boolean;
  #converted: Request | undefined;

  constructor(request: HttpRequest, access: Access, isPublic: boolean) {
    this.#request = request;
    this.#access = access;
    this.#isPublic = isPublic;
  }

  get request(): Request {
    const { target, options } = passOn(this.#access, this.#request.url ?? "/", this.#isPublic);
    this.#converted ??= toWebRequest(this.#request, target, options);
    return this.#converted;
  }
}

function parseArguments(body: Buffer): unknown[] {
  if (body.length === 0) return [];
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    throw new SignalboxError("invalid_request", { message: "The body is not valid JSON" });
  }
  if (!Array.isArray(value)) {
    throw new SignalboxError("invalid_request", { message: "The body must be a JSON array of arguments" });
  }
  return value as unknown[];
}
