/**
 * HTTP on `/agents/{agent}/{name}[/…]`: requests to the agent's `onRequest`, and method calls on the reserved sub-path `POST …/rpc/{method}`
 * with a JSON array of arguments.
 */
import type { HttpRequest, HttpResponse } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { RequestContext } from "../../http/request-context.ts";
import { within } from "../../core/within.ts";
import { type Access, type AccessOptions, findAccess, passOn } from "./access.ts";
import type { AdmissionAnswer } from "../api/admission.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Cors } from "./cors.ts";
import { type CreationOptions, requireInstance } from "./creation.ts";
import type { InstanceEnvironment } from "../instance/instance-environment.ts";
import { checkInstanceName } from "../instance/instance-ref.ts";
import { callMethod, findCallable, publicMessage } from "../instance/method-call.ts";
import { sendWebResponse, toWebRequest } from "./web-request.ts";

export interface DoorOptions extends CreationOptions {
  readonly access: AccessOptions;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly environment: Pick<InstanceEnvironment, "envOf" | "clock">;
  /** Null when pages of other origins get no access. */
  readonly cors: Cors | null;
  readonly maxBodyBytes: number;
  readonly maxMessageBytes: number;
  /** Null for a process that is alone. */
  readonly elsewhere: RequestsElsewhere | null;
}

/** Runs requests at the nodes that own their instances, this one included. */
export interface RequestsElsewhere {
  /** `signal` aborts when the client has disconnected. */
  request(work: RequestWork, signal: AbortSignal): Promise<RequestAnswer>;
  call(work: CallWork): Promise<string | undefined>;
}

/** A request whose caller has access, without what the node of the caller alone knows. */
interface AdmittedWork {
  readonly target: Pick<AgentTarget, "definition" | "name">;
  readonly access: Pick<Access, "account" | "level" | "isStranger">;
}

export interface RequestWork extends AdmittedWork {
  readonly request: Request;
  /** Undefined for a method that has none. */
  readonly body: Uint8Array | undefined;
  /** What `authorize` found out about the caller. */
  readonly props: unknown;
  readonly label: string;
}

export interface RequestAnswer {
  readonly response: Response;
  /** Must be called when the response has been sent: its body may come from the agent's object. */
  readonly release: (() => void) | undefined;
}

export interface CallWork extends AdmittedWork {
  readonly method: string;
  readonly args: readonly unknown[];
  readonly origin: { readonly request: Request };
  readonly isConcurrent: boolean | undefined;
}

export interface AgentTarget {
  readonly definition: AgentDefinition;
  readonly name: string;
  /** Path segments after the name. */
  readonly rest: readonly string[];
}

/** The reserved sub-path of method calls. */
const RPC_SEGMENT = "rpc";
/** An `admitRequest` that never returns must not hold connections. */
const ADMISSION_TIMEOUT_MS = 10_000;
const NO_BODY = new Uint8Array();

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
  const { response: answer, release } =
    options.elsewhere === null
      ? await runRequest(options, work)
      : await options.elsewhere.request(work, signalOf(response));
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

/** Runs the request on this node. */
export async function runRequest(options: DoorOptions, work: RequestWork): Promise<RequestAnswer> {
  const { target, access, request, props, label } = work;
  // A caller with read access learns nothing about an instance that does not exist.
  if (access.level === "read") await requireInstance(options, target, access);
  const admission = admit(options, work);
  const refusal = admission instanceof Promise ? await admission : admission;
  if (refusal instanceof Response) return { response: refusal, release: undefined };
  if (access.level === "edit") {
    const created = requireInstance(options, target, access);
    if (created instanceof Promise) await created;
  }
  const instance = options.directory.get(target.definition, access.account, target.name);
  const requestContext = { props };
  const response = await instance.run({
    kind: "request",
    label,
    origin: { request },
    body: ({ agent }) => agent.onRequest(request, requestContext),
  });
  if (!(response instanceof Response)) {
    throw new SignalboxError("agent_failed", { message: "onRequest did not return a Response" });
  }
  return { response, release: response.body === null ? undefined : instance.hold() };
}

/** Aborts when the client disconnects. */
function signalOf(response: HttpResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => controller.abort());
  return controller.signal;
}

/** Calls `admitRequest`, if the class has it. */
function admit(
  { environment }: DoorOptions,
  { target: { definition, name }, access: { account }, request, props, body }: RequestWork,
): AdmissionAnswer | Promise<AdmissionAnswer> {
  const { agentClass } = definition;
  if (agentClass.admitRequest === undefined) return undefined;
  const { clock } = environment;
  const answer = agentClass.admitRequest(request, {
    account,
    name,
    env: environment.envOf(account),
    props,
    body: body ?? NO_BODY,
    now: clock.now(),
  });
  if (!(answer instanceof Promise)) return answer;
  return within(answer, ADMISSION_TIMEOUT_MS, () => new SignalboxError("agent_turn_timeout"));
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
    result = await (options.elsewhere === null ? runCall(options, work) : options.elsewhere.call(work));
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

/** Runs the method on this node. Resolves to the result as JSON. */
export async function runCall(options: DoorOptions, work: CallWork): Promise<string | undefined> {
  const { target, access, method, args, origin, isConcurrent } = work;
  const created = requireInstance(options, target, access);
  if (created instanceof Promise) await created;
  const instance = options.directory.get(target.definition, access.account, target.name);
  return callMethod(instance, method, args, { origin, isConcurrent });
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
