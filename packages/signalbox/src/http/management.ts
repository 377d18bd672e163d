/**
 * The management interface: serves the areas' routes with one order of work: path, method, credential, permission, account,
 * input, handler, envelope.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { SignalboxError } from "@signalbox/protocol";
import type { ZodType } from "zod";
import { isAllowed, type Principal } from "../accounts/index.ts";
import type { Area } from "./area.ts";
import type { RequestContext } from "./request-context.ts";
import type { Reply, Route, RouteRequest } from "./route.ts";
import { RouteTree } from "./route-tree.ts";

export interface ManagementOptions {
  readonly routes: readonly Route[];
  readonly authenticate: (request: IncomingMessage) => Principal | null;
  readonly accountExists: (accountId: string) => boolean;
  readonly maxBodyBytes: number;
}

export function createManagement(options: ManagementOptions): Area {
  const tree = new RouteTree();
  for (const route of options.routes) tree.add(route);
  return {
    name: "management",
    segments: [...new Set(options.routes.map((route) => route.path.split("/")[1] ?? "")), "client"],
    dialect: "envelope",
    handle: (request, response, context) => serve(tree, options, request, response, context),
  };
}

async function serve(
  tree: RouteTree,
  options: ManagementOptions,
  request: IncomingMessage,
  response: ServerResponse,
  context: RequestContext,
): Promise<void> {
  const match = tree.match(request.method ?? "GET", withoutPrefix(context.segments));
  if (match === undefined) throw new SignalboxError("not_found");
  const { route, params } = match;
  if (route === undefined) {
    throw new SignalboxError("method_not_allowed", { headers: { allow: match.allowed.join(", ") } });
  }
  const principal = options.authenticate(request);
  if (principal === null) throw new SignalboxError("unauthenticated");
  const query = new LazyQuery(context.query);
  if (route.accountOf !== undefined) params["account_id"] = route.accountOf(principal, query.parsed);
  authorise(route, principal, params["account_id"], options);

  const maxBodyBytes = route.maxBodyBytes ?? options.maxBodyBytes;
  const abort = new LazyAbort(response);
  const routeRequest: RouteRequest = {
    id: context.id,
    params,
    get rawQuery() {
      return query.parsed;
    },
    query: route.query === undefined ? undefined : parseInput(route.query, Object.fromEntries(query.parsed)),
    body:
      route.body === undefined
        ? undefined
        : parseInput(route.body, await readJson(request, context, maxBodyBytes)),
    headers: request.headers,
    principal,
    get signal() {
      return abort.signal;
    },
    readBody: () => context.readBody(maxBodyBytes),
  };
  await send(response, await route.handler(routeRequest), request.method === "HEAD");
}

function withoutPrefix(segments: readonly string[]): readonly string[] {
  return segments[0] === "client" && segments[1] === "v4" ? segments.slice(2) : segments;
}

function authorise(
  route: Route,
  principal: Principal,
  accountId: string | undefined,
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
  } else if (accountId !== undefined && !isAllowed(principal, accountId, route.access)) {
    throw new SignalboxError("forbidden");
  }
  // After the permission check, so that only those who may know learn whether an account exists.
  if (accountId !== undefined && !options.accountExists(accountId)) {
    throw new SignalboxError("not_found", { message: "Account not found" });
  }
}

async function readJson(
  request: IncomingMessage,
  context: RequestContext,
  maxBytes: number,
): Promise<unknown> {
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

async function send(response: ServerResponse, reply: Reply, isHead: boolean): Promise<void> {
  const status = reply.status ?? 200;
  if (reply.raw !== undefined && typeof reply.raw.body === "object" && !Buffer.isBuffer(reply.raw.body)) {
    response.writeHead(status, { ...reply.headers, "content-type": reply.raw.contentType });
    if (isHead) {
      reply.raw.body.destroy();
      response.end();
      return;
    }
    try {
      await pipeline(reply.raw.body, response);
    } catch (error) {
      // The reader of a stream may leave at any time; that is its end and not a failure.
      if (!isPrematureClose(error)) throw error;
    }
    return;
  }
  if (status === 204) {
    response.writeHead(204, reply.headers);
    response.end();
    return;
  }
  const body = reply.raw === undefined ? envelope(reply) : (reply.raw.body as string | Buffer);
  response.writeHead(status, {
    ...reply.headers,
    "content-type": reply.raw?.contentType ?? "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  });
  response.end(isHead ? undefined : body);
}

function envelope(reply: Reply): string {
  const messages = reply.messages === undefined ? "[]" : JSON.stringify(reply.messages);
  const result = reply.resultJson ?? JSON.stringify(reply.result ?? null);
  const info = reply.resultInfo === undefined ? "" : `,"result_info":${JSON.stringify(reply.resultInfo)}`;
  return `{"success":true,"errors":[],"messages":${messages},"result":${result}${info}}`;
}

function isPrematureClose(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_STREAM_PREMATURE_CLOSE";
}

/** Not every request has a query, and not every handler looks at it. */
class LazyQuery {
  readonly #text: string;
  #parsed: URLSearchParams | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  get parsed(): URLSearchParams {
    this.#parsed ??= new URLSearchParams(this.#text);
    return this.#parsed;
  }
}

/** Most handlers never look at the signal, so its controller and listener are made when one does. */
class LazyAbort {
  readonly #response: ServerResponse;
  #controller: AbortController | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#response.destroyed) controller.abort();
      this.#response.once("close", () => {
        if (!this.#response.writableFinished) controller.abort();
      });
    }
    return this.#controller.signal;
  }
}
