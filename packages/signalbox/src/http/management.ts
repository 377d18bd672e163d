/**
 * The management interface: serves the areas' routes with one order of work: path, method, credential, permission, account,
 * input, handler, envelope.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SignalboxError } from "@signalbox/protocol";
import type { ZodType } from "zod";
import { isAllowed, type Principal } from "../accounts/index.ts";
import type { Area } from "./area.ts";
import type { RequestContext } from "./request-context.ts";
import type { Reply, Route, RouteRequest } from "./route.ts";
import { RouteTree } from "./route-tree.ts";

const JSON_TYPE = "application/json; charset=utf-8";
/** Text with as many bytes as characters is the same in latin1 as in UTF-8, and node copies it several times faster. */
const ASCII = "latin1";

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

/** Synchronous up to the handler, and to the end where the handler is: an answer at hand pays for no promise. */
function serve(
  tree: RouteTree,
  options: ManagementOptions,
  request: IncomingMessage,
  response: ServerResponse,
  context: RequestContext,
): void | Promise<void> {
  const match = tree.match(request.method ?? "GET", withoutPrefix(context.segments));
  if (match === undefined) throw new SignalboxError("not_found");
  const { route, params } = match;
  if (route === undefined) {
    throw new SignalboxError("method_not_allowed", { headers: { allow: match.allowed.join(", ") } });
  }
  const principal = options.authenticate(request);
  if (principal === null) throw new SignalboxError("unauthenticated");
  const query = new QueryText(context.query);
  if (route.accountOf !== undefined) params["account_id"] = route.accountOf(principal, query.parsed);
  authorise(route, principal, params["account_id"], options);

  const maxBodyBytes = route.maxBodyBytes ?? options.maxBodyBytes;
  const routeRequest = new ManagedRequest(context, request, response, params, principal, query, maxBodyBytes);
  if (route.query !== undefined) {
    routeRequest.query = parseInput(route.query, Object.fromEntries(query.parsed));
  }
  const { body } = route;
  const isHead = request.method === "HEAD";
  if (body === undefined) return answer(response, route.handler(routeRequest), isHead);
  return readJson(request, context, maxBodyBytes).then((input) => {
    routeRequest.body = parseInput(body, input);
    return answer(response, route.handler(routeRequest), isHead);
  });
}

function answer(
  response: ServerResponse,
  reply: Reply | Promise<Reply>,
  isHead: boolean,
): void | Promise<void> {
  if (reply instanceof Promise) return reply.then((ready) => send(response, ready, isHead));
  return send(response, reply, isHead);
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

/** Writes the answer; a promise only for a stream, which takes its time. */
function send(response: ServerResponse, reply: Reply, isHead: boolean): void | Promise<void> {
  const status = reply.status ?? 200;
  if (reply.raw !== undefined && typeof reply.raw.body === "object" && !Buffer.isBuffer(reply.raw.body)) {
    response.writeHead(status, { ...reply.headers, "content-type": reply.raw.contentType });
    return sendStream(response, reply.raw.body, isHead);
  }
  if (status === 204) {
    response.writeHead(204, reply.headers);
    response.end();
    return;
  }
  const body = reply.raw === undefined ? envelope(reply) : (reply.raw.body as string | Buffer);
  const length = Buffer.byteLength(body);
  // A list of names and values: node reads it faster than an object.
  const headers = ["content-type", reply.raw?.contentType ?? JSON_TYPE, "content-length", String(length)];
  for (const name in reply.headers) headers.push(name, reply.headers[name] ?? "");
  response.writeHead(status, headers);
  if (isHead) response.end();
  else if (typeof body === "string" && length === body.length) response.end(body, ASCII);
  else response.end(body);
}

async function sendStream(response: ServerResponse, body: Readable, isHead: boolean): Promise<void> {
  if (isHead) {
    body.destroy();
    response.end();
    return;
  }
  try {
    await pipeline(body, response);
  } catch (error) {
    // The reader of a stream may leave at any time; that is its end and not a failure.
    if (!isPrematureClose(error)) throw error;
  }
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

/** A request as handlers see it; whatever costs time is made when first asked for. */
class ManagedRequest implements RouteRequest {
  readonly id: string;
  readonly params: Record<string, string>;
  readonly principal: Principal;
  query: unknown = undefined;
  body: unknown = undefined;
  readonly #context: RequestContext;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #query: QueryText;
  readonly #maxBodyBytes: number;
  #controller: AbortController | undefined;

  constructor(
    context: RequestContext,
    request: IncomingMessage,
    response: ServerResponse,
    params: Record<string, string>,
    principal: Principal,
    query: QueryText,
    maxBodyBytes: number,
  ) {
    this.id = context.id;
    this.params = params;
    this.principal = principal;
    this.#context = context;
    this.#request = request;
    this.#response = response;
    this.#query = query;
    this.#maxBodyBytes = maxBodyBytes;
  }

  get headers(): IncomingHttpHeaders {
    return this.#request.headers;
  }

  get rawQuery(): URLSearchParams {
    return this.#query.parsed;
  }

  parameter(name: string): string | null {
    return this.#query.find(name);
  }

  allowParameters(known: readonly string[]): void {
    const unknown = this.#query.findOther(known);
    if (unknown !== null) {
      throw new SignalboxError("invalid_request", {
        message: `unknown parameter ${JSON.stringify(unknown)}; known are ${known.join(", ")}`,
      });
    }
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const response = this.#response;
      if (response.destroyed) controller.abort();
      response.once("close", () => {
        if (!response.writableFinished) controller.abort();
      });
    }
    return this.#controller.signal;
  }

  readBody(): Promise<Buffer> {
    return this.#context.readBody(this.#maxBodyBytes);
  }
}

/** The query, parsed only when it has to be. */
class QueryText {
  readonly #text: string;
  /** Without escapes, as most are: names and values are then found where they stand. */
  #isPlain: boolean | undefined;
  #parsed: URLSearchParams | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  get parsed(): URLSearchParams {
    this.#parsed ??= new URLSearchParams(this.#text);
    return this.#parsed;
  }

  /** The first parameter whose name is not among these. */
  findOther(known: readonly string[]): string | null {
    const text = this.#text;
    if (!this.#hasPlainText()) return this.parsed.keys().find((name) => !known.includes(name)) ?? null;
    for (let start = 0; start < text.length;) {
      const next = text.indexOf("&", start);
      const end = next === -1 ? text.length : next;
      const equals = text.indexOf("=", start);
      const nameEnd = equals === -1 || equals > end ? end : equals;
      if (end > start && !isAmong(text, start, nameEnd, known)) return text.slice(start, nameEnd);
      start = end + 1;
    }
    return null;
  }

  #hasPlainText(): boolean {
    this.#isPlain ??= !this.#text.includes("%") && !this.#text.includes("+");
    return this.#isPlain;
  }

  find(name: string): string | null {
    const text = this.#text;
    if (!this.#hasPlainText()) return this.parsed.get(name);
    for (let start = 0; start <= text.length;) {
      const next = text.indexOf("&", start);
      const end = next === -1 ? text.length : next;
      if (text.startsWith(name, start)) {
        const after = start + name.length;
        if (after === end) return "";
        if (text.charCodeAt(after) === 0x3d) return text.slice(after + 1, end);
      }
      start = end + 1;
    }
    return null;
  }
}

/** Compares in place: the names of a read's parameters are looked at on every one. */
function isAmong(text: string, start: number, end: number, known: readonly string[]): boolean {
  return known.some((name) => name.length === end - start && text.startsWith(name, start));
}
