/**
 * The management interface. Every request is processed in the same order: path, method, credential, permission, account, input, handler,
 * envelope. A write is recorded in the audit log before it is answered, also if it is refused at one of these steps.
 * See docs/decisions/0002 and 0188.
 */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { z, type ZodType } from "zod";
import { type Accounts, type Authenticator, isAllowed, type Principal } from "../accounts/index.ts";
import type { AuditTrail } from "../contracts/audit-trail.ts";
import { isNestedDeeperThan } from "../core/json-depth.ts";
import { overloaded } from "../core/overload.ts";
import type { SharedPlaces } from "../core/shared-pool.ts";
import { requireStorableJson } from "../core/storable-text.ts";
import type { Area } from "./area.ts";
import { ManagedRequest } from "./managed-request.ts";
import { ManagedWrite } from "./managed-write.ts";
import type { RequestContext } from "./request-context.ts";
import type { Reply, Route } from "./route.ts";
import { alwaysServedPaths, knownParameters, requireAccount, singleParameters } from "./route-rules.ts";
import { type RouteMatch, RouteTree } from "./route-tree.ts";
import { sendReply } from "./send-reply.ts";

/** Levels of arrays and objects in a body. Handlers serialise parts of it, which fails at some thousands. */
const MAX_DEPTH = 512;
const NO_FIELDS = z.strictObject({});

export interface ManagementOptions {
  readonly routes: readonly Route[];
  readonly authenticator: Authenticator;
  /** Called for a wrong credential. It may throw an error, which is sent instead of 401. */
  readonly onWrongCredential: (request: HttpRequest) => void;
  /** Scheme, host and port at which the sender of the request reaches the gateway. */
  readonly trafficOrigin: (request: HttpRequest) => string;
  readonly accounts: Accounts;
  /** Of requests and WebSockets, by account. */
  readonly places: SharedPlaces;
  readonly audit: AuditTrail;
  readonly maxBodyBytes: number;
}

const JSON_OR_FORM = /^application\/(([\w.+-]+\+)?json|x-www-form-urlencoded)\s*(;|$)/i;

export function createManagement(options: ManagementOptions): Area {
  const tree = new RouteTree();
  for (const route of options.routes) {
    requireAccount(route);
    tree.add(route, knownParameters(route));
  }
  const management = new Management(tree, options);
  const alwaysServed = alwaysServedPaths(options.routes);
  return {
    name: "management",
    segments: [...new Set(options.routes.map((route) => route.path.split("/")[1] ?? "")), "client"],
    dialect: "envelope",
    isAlwaysServed: (path) => alwaysServed.has(path),
    handle: (request, response, context) => management.serve(request, response, context),
  };
}

interface FoundRoute extends RouteMatch {
  readonly route: Route;
}

class Management {
  readonly #tree: RouteTree;
  readonly #options: ManagementOptions;
  /** The parameters of each route that may stand only once. */
  readonly #single = new WeakMap<Route, ReadonlySet<string>>();

  constructor(tree: RouteTree, options: ManagementOptions) {
    this.#tree = tree;
    this.#options = options;
  }

  /** Synchronous if the handler is: a read from memory creates no promise. */
  serve(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void> {
    const match = this.#tree.match(request.method ?? "GET", withoutPrefix(context.segments));
    if (match === undefined) throw new SignalboxError("not_found");
    const { route } = match;
    if (route === undefined) {
      throw new SignalboxError("method_not_allowed", { headers: { allow: match.allowed.join(", ") } });
    }
    if (route.method !== "GET") return this.#serveWrite({ ...match, route }, request, response, context);
    const principal = this.#authenticate(request);
    nameAccount({ ...match, route }, principal, context);
    const managed = this.#admit({ ...match, route }, principal, request, response, context);
    const { body } = route;
    if (body === undefined) return this.#reply(response, managed, route.handler(managed));
    return readJson(request, context, route, managed.maxBodyBytes).then((input) => {
      managed.body = parseInput(body, input);
      return this.#reply(response, managed, route.handler(managed));
    });
  }

  async #serveWrite(
    match: FoundRoute,
    request: HttpRequest,
    response: HttpResponse,
    context: RequestContext,
  ): Promise<void> {
    const { route, params } = match;
    const { audit, accounts } = this.#options;
    const hasAccount = (id: string) => accounts.find(id) !== undefined;
    const parts = { audit, route, request, context, params, hasAccount };
    let write: ManagedWrite | undefined;
    let managed: ManagedRequest;
    let reply: Reply;
    try {
      const principal = this.#authenticate(request);
      nameAccount(match, principal, context);
      write = new ManagedWrite(parts, principal);
      managed = this.#admit(match, principal, request, response, context);
      const schema = route.body ?? (takesNoBody(route) && hasBody(request) ? NO_FIELDS : undefined);
      if (schema !== undefined) {
        const input = await readJson(request, context, route, managed.maxBodyBytes);
        write.receive(input);
        managed.body = parseInput(schema, input);
      }
      reply = await write.run(managed, () => this.#readBefore(match, managed));
    } catch (error) {
      await (write ?? new ManagedWrite(parts, null)).fail(error);
      throw error;
    }
    await write.succeed(reply);
    return sendReply(response, reply, managed, this.#options.authenticator);
  }

  /** Returns the resource as the GET of the path shows it; null if there is no such route or resource. */
  async #readBefore({ route, params }: FoundRoute, managed: ManagedRequest): Promise<unknown> {
    const { method, path } = route;
    // A deletion of several resources does not read them all first.
    const isOne = path.endsWith("}") || method === "PUT" || method === "PATCH";
    if (method === "POST" || !isOne || route.recordsChange === true) return null;
    const read = this.#tree.match("GET", path.slice(1).split("/"))?.route;
    if (read === undefined || read.path !== path) return null;
    try {
      const reading = managed.toRead(params);
      if (read.query !== undefined) reading.query = parseInput(read.query, {});
      const { result } = await read.handler(reading);
      return Array.isArray(result) ? null : (result ?? null);
    } catch {
      return null;
    }
  }

  /** Checks the caller, the account and the query, and creates the request of the handler. */
  #admit(
    { route, params, parameters }: FoundRoute,
    principal: Principal,
    request: HttpRequest,
    response: HttpResponse,
    context: RequestContext,
  ): ManagedRequest {
    authorise(route, principal, params, this.#options);
    const { places, trafficOrigin } = this.#options;
    // The response may be a stream without an end, and a token may open many. The operator is never refused.
    if (principal.kind !== "root" && !context.memory.occupy(places.shareOf(principal.token.accountId)))
      throw overloaded();
    const maxBodyBytes = route.maxBodyBytes ?? this.#options.maxBodyBytes;
    const managed = new ManagedRequest({
      context,
      request,
      response,
      params,
      principal,
      maxBodyBytes,
      trafficOrigin,
    });
    if (context.query !== "") {
      if (parameters !== null) managed.allowParameters(parameters);
      managed.refuseRepeated(this.#singleOf(route));
      if (checksText(route)) managed.requireStorableQuery();
    }
    if (route.query !== undefined) {
      managed.query = parseInput(route.query, Object.fromEntries(managed.rawQuery));
    }
    return managed;
  }

  #singleOf(route: Route): ReadonlySet<string> {
    let single = this.#single.get(route);
    if (single === undefined) {
      single = singleParameters(route);
      this.#single.set(route, single);
    }
    return single;
  }

  #authenticate(request: HttpRequest): Principal {
    const principal = this.#options.authenticator.fromRequest(request);
    if (principal !== null) return principal;
    if (request.headers.authorization !== undefined) this.#options.onWrongCredential(request);
    throw new SignalboxError("unauthenticated");
  }

  #reply(
    response: HttpResponse,
    request: ManagedRequest,
    reply: Reply | Promise<Reply>,
  ): void | Promise<void> {
    const { authenticator } = this.#options;
    const send = (ready: Reply) => sendReply(response, ready, request, authenticator);
    return reply instanceof Promise ? reply.then(send) : send(reply);
  }
}

/** Sets the account of a path without one. */
function nameAccount({ route, params }: FoundRoute, principal: Principal, { query }: RequestContext): void {
  if (route.accountOf !== undefined) {
    params["account_id"] = route.accountOf(principal, new URLSearchParams(query));
  }
}

function withoutPrefix(segments: readonly string[]): readonly string[] {
  return segments[0] === "client" && segments[1] === "v4" ? segments.slice(2) : segments;
}

function authorise(
  route: Route,
  principal: Principal,
  { account_id: accountId, gateway_id: gatewayId }: Readonly<Record<string, string | undefined>>,
  options: ManagementOptions,
): void {
  const isRoot = principal.kind === "root";
  if (route.access === "root") {
    if (!isRoot) throw new SignalboxError("forbidden");
  } else if (route.access === "authenticated") {
    // Tokens have access only to their own account.
    if (!isRoot && accountId !== undefined && principal.token.accountId !== accountId) {
      throw new SignalboxError("forbidden");
    }
  } else if (accountId === undefined || !isAllowed(principal, accountId, route.access)) {
    throw new SignalboxError("forbidden");
  }
  if (!isRoot && principal.token.gatewayId !== null) {
    // Routes are closed to bound tokens by default.
    const hasAccess =
      gatewayId === undefined ? route.narrowsToGateway === true : gatewayId === principal.token.gatewayId;
    if (!hasAccess) throw new SignalboxError("forbidden");
  }
  // After the permission check: a caller without permission must not learn whether the account exists.
  if (accountId !== undefined && options.accounts.find(accountId) === undefined) {
    throw new SignalboxError("not_found", { message: "Account not found" });
  }
}

/** What such a route is sent would be ignored: filters in the body of a deletion, for example, would delete everything. */
function takesNoBody({ body, documents }: Route): boolean {
  return body === undefined && documents?.body === undefined;
}

function hasBody({ headers }: HttpRequest): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** False for routes with error codes of their own for the text of parameters: tags and the selection of calls. */
function checksText({ documents, parameters }: Route): boolean {
  return documents?.query === undefined && parameters !== "handler";
}

async function readJson(
  request: HttpRequest,
  context: RequestContext,
  route: Route,
  maxBytes: number,
): Promise<unknown> {
  const contentType = request.headers["content-type"];
  // `curl -d` declares a form whatever it sends. A page of another origin cannot use this: its `Origin` is refused.
  if (contentType !== undefined && !JSON_OR_FORM.test(contentType)) {
    throw new SignalboxError("unsupported_media_type");
  }
  const body = await context.readBody(maxBytes);
  if (body.length === 0) return {};
  let json: string;
  let value: unknown;
  try {
    json = new TextDecoder("utf-8", { fatal: true }).decode(body);
    value = JSON.parse(json);
  } catch {
    throw new SignalboxError("invalid_request", { message: "The body is not valid JSON" });
  }
  if (isNestedDeeperThan(MAX_DEPTH, json)) {
    throw new SignalboxError("invalid_request", {
      message: `The body is nested too deeply (maximum ${MAX_DEPTH} levels)`,
    });
  }
  if (route.acceptsNul !== true) requireStorableJson(value, json);
  return value;
}

function parseInput(schema: ZodType, input: unknown): unknown {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.path.join(".") ?? "";
  throw new SignalboxError("invalid_request", {
    message:
      where === "" ? (issue?.message ?? "Invalid request") : `${where}: ${issue?.message ?? "invalid"}`,
  });
}
