/**
 * The management interface. Every request is processed in the same order: path, method, credential, permission, account, input, handler,
 * envelope.
 * See docs/decisions/0002.
 */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { ZodType } from "zod";
import { type Accounts, type Authenticator, isAllowed, type Principal } from "../accounts/index.ts";
import type { Area } from "./area.ts";
import { ManagedRequest } from "./managed-request.ts";
import type { RequestContext } from "./request-context.ts";
import type { Reply, Route } from "./route.ts";
import { knownParameters, requireAccount } from "./route-rules.ts";
import { RouteTree } from "./route-tree.ts";
import { sendReply } from "./send-reply.ts";

export interface ManagementOptions {
  readonly routes: readonly Route[];
  readonly authenticator: Authenticator;
  /** Called for a wrong credential. It may throw an error, which is sent instead of 401. */
  readonly onWrongCredential: (request: HttpRequest) => void;
  /** Scheme, host and port at which the sender of the request reaches the gateway. */
  readonly trafficOrigin: (request: HttpRequest) => string;
  readonly accounts: Accounts;
  readonly maxBodyBytes: number;
}

/** The state of the node and of the cluster, for operators. */
const STATUS_PATH = /^(\/client\/v4)?\/cluster(\/|$)/;

export function createManagement(options: ManagementOptions): Area {
  const tree = new RouteTree();
  for (const route of options.routes) {
    requireAccount(route);
    tree.add(route, knownParameters(route));
  }
  const management = new Management(tree, options);
  return {
    name: "management",
    segments: [...new Set(options.routes.map((route) => route.path.split("/")[1] ?? "")), "client"],
    dialect: "envelope",
    isAlwaysServed: (path) => STATUS_PATH.test(path),
    handle: (request, response, context) => management.serve(request, response, context),
  };
}

class Management {
  readonly #tree: RouteTree;
  readonly #options: ManagementOptions;

  constructor(tree: RouteTree, options: ManagementOptions) {
    this.#tree = tree;
    this.#options = options;
  }

  /** Synchronous if the handler is: a read from memory creates no promise. */
  serve(request: HttpRequest, response: HttpResponse, context: RequestContext): void | Promise<void> {
    const match = this.#tree.match(request.method ?? "GET", withoutPrefix(context.segments));
    if (match === undefined) throw new SignalboxError("not_found");
    const { route, params, parameters } = match;
    if (route === undefined) {
      throw new SignalboxError("method_not_allowed", { headers: { allow: match.allowed.join(", ") } });
    }
    const principal = this.#authenticate(request);
    if (route.accountOf !== undefined) {
      params["account_id"] = route.accountOf(principal, new URLSearchParams(context.query));
    }
    authorise(route, principal, params, this.#options);

    const { trafficOrigin } = this.#options;
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
    if (parameters !== null && context.query !== "") managed.allowParameters(parameters);
    if (route.query !== undefined) {
      managed.query = parseInput(route.query, Object.fromEntries(managed.rawQuery));
    }
    const { body } = route;
    if (body === undefined) return this.#reply(response, managed, route.handler(managed));
    return readJson(request, context, maxBodyBytes).then((input) => {
      managed.body = parseInput(body, input);
      return this.#reply(response, managed, route.handler(managed));
    });
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

async function readJson(request: HttpRequest, context: RequestContext, maxBytes: number): Promise<unknown> {
  const contentType = request.headers["content-type"];
  if (contentType !== undefined && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(contentType)) {
    throw new SignalboxError("unsupported_media_type");
  }
  const body = await context.readBody(maxBytes);
  if (body.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new SignalboxError("invalid_request", { message: "The body is not valid JSON" });
  }
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
