/**
 * The management interface: serves the areas' routes with one order of work: path, method, credential, permission, account,
 * input, handler, envelope.
 */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import type { ZodType } from "zod";
import { isAllowed, type Principal } from "../accounts/index.ts";
import type { Area } from "./area.ts";
import { ManagedRequest } from "./managed-request.ts";
import { QueryText } from "./query-text.ts";
import type { RequestContext } from "./request-context.ts";
import type { Reply, Route } from "./route.ts";
import { knownParameters, requireAccount } from "./route-rules.ts";
import { RouteTree } from "./route-tree.ts";
import { sendReply, type WatchCredential } from "./send-reply.ts";

export interface ManagementOptions {
  readonly routes: readonly Route[];
  readonly authenticate: (request: HttpRequest) => Principal | null;
  readonly watch: WatchCredential;
  /** May throw to answer otherwise than with 401. */
  readonly onWrongCredential: (request: HttpRequest) => void;
  /** Scheme, host and port by which callers of the request reach the gateway. */
  readonly trafficOrigin: (request: HttpRequest) => string;
  readonly accountExists: (accountId: string) => boolean;
  readonly maxBodyBytes: number;
}

export function createManagement(options: ManagementOptions): Area {
  const tree = new RouteTree();
  for (const route of options.routes) {
    requireAccount(route);
    tree.add(route, knownParameters(route));
  }
  return {
    name: "management",
    segments: [...new Set(options.routes.map((route) => route.path.split("/")[1] ?? "")), "client"],
    dialect: "envelope",
    handle: (request, response, context) => serve(tree, options, request, response, context),
  };
}

/** Synchronous up to the handler, and to the end where the handler is: an answer at hand pays for no promise. */
function serve(
  tree: RouteTree,
  options: ManagementOptions,
  request: HttpRequest,
  response: HttpResponse,
  context: RequestContext,
): void | Promise<void> {
  const match = tree.match(request.method ?? "GET", withoutPrefix(context.segments));
  if (match === undefined) throw new SignalboxError("not_found");
  const { route, params, parameters } = match;
  if (route === undefined) {
    throw new SignalboxError("method_not_allowed", { headers: { allow: match.allowed.join(", ") } });
  }
  const principal = options.authenticate(request);
  if (principal === null) {
    if (request.headers.authorization !== undefined) options.onWrongCredential(request);
    throw new SignalboxError("unauthenticated");
  }
  const query = new QueryText(context.query);
  if (route.accountOf !== undefined) params["account_id"] = route.accountOf(principal, query.parsed);
  authorise(route, principal, params, options);

  const maxBodyBytes = route.maxBodyBytes ?? options.maxBodyBytes;
  const routeRequest = new ManagedRequest(
    context,
    request,
    response,
    params,
    principal,
    query,
    maxBodyBytes,
    options.trafficOrigin,
  );
  if (parameters !== null && context.query !== "") routeRequest.allowParameters(parameters);
  if (route.query !== undefined) {
    routeRequest.query = parseInput(route.query, Object.fromEntries(query.parsed));
  }
  const { body } = route;
  const isHead = request.method === "HEAD";
  if (body === undefined) return answer(options, response, routeRequest, route.handler(routeRequest), isHead);
  return readJson(request, context, maxBodyBytes).then((input) => {
    routeRequest.body = parseInput(body, input);
    return answer(options, response, routeRequest, route.handler(routeRequest), isHead);
  });
}

function answer(
  { watch }: ManagementOptions,
  response: HttpResponse,
  { principal }: ManagedRequest,
  reply: Reply | Promise<Reply>,
  isHead: boolean,
): void | Promise<void> {
  if (reply instanceof Promise)
    return reply.then((ready) => sendReply(response, ready, isHead, principal, watch));
  return sendReply(response, reply, isHead, principal, watch);
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
    // A token may see the paths of its own account only, whatever they need.
    if (!isRoot && accountId !== undefined && principal.token.accountId !== accountId) {
      throw new SignalboxError("forbidden");
    }
  } else if (accountId === undefined || !isAllowed(principal, accountId, route.access)) {
    throw new SignalboxError("forbidden");
  }
  if (!isRoot && principal.token.gatewayId !== null) {
    // Closed unless the route says otherwise: a new route is out of reach for a bound token until somebody thought of it.
    const isReached =
      gatewayId === undefined ? route.narrowsToGateway === true : gatewayId === principal.token.gatewayId;
    if (!isReached) throw new SignalboxError("forbidden");
  }
  // After the permission check, so that only those who may know learn whether an account exists.
  if (accountId !== undefined && !options.accountExists(accountId)) {
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
