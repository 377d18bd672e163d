/**
 * A management write and its entry in the audit log. The router begins it with the first thing it knows of the caller, and finishes it with the
 * outcome before the client is answered.
 */
import { isFields } from "../core/fields.ts";
import type { HttpRequest } from "../engines/http-server/index.ts";
import { auditActor, type Principal } from "../accounts/index.ts";
import {
  type AuditTrail,
  currentWrite,
  type PendingWrite,
  type WriteResult,
} from "../contracts/audit-trail.ts";
import type { ManagedRequest } from "./managed-request.ts";
import type { RequestContext } from "./request-context.ts";
import { toSignalboxError } from "./render-error.ts";
import type { Reply, Route } from "./route.ts";

/** Maximum length of texts that the client chooses. */
const MAX_FACT = 256;
/** A body that the handler reads itself is recorded up to this size. */
const MAX_RAW_BODY = 64 * 1024;

export interface WriteParts {
  readonly audit: AuditTrail;
  readonly route: Route;
  readonly request: HttpRequest;
  readonly context: RequestContext;
  readonly params: Readonly<Record<string, string>>;
  readonly hasAccount: (accountId: string) => boolean;
}

export class ManagedWrite {
  readonly #parts: WriteParts;
  readonly #pending: PendingWrite;
  #managed: ManagedRequest | undefined;
  #input: unknown = undefined;
  #before: unknown = undefined;

  /** `principal` is null if the credential was refused. */
  constructor(parts: WriteParts, principal: Principal | null) {
    this.#parts = parts;
    const { route, request, context, params } = parts;
    const { headers } = request;
    const { action, resourceType, operation } = describeRoute(route);
    this.#pending = parts.audit.begin({
      accountId: accountOf(principal, parts),
      requestId: context.id,
      actor: auditActor(principal, request),
      action,
      operation,
      resourceType,
      resourceId: resourceIdOf(route, params),
      path: context.path.slice(0, 2 * MAX_FACT),
      userAgent: headers["user-agent"]?.slice(0, MAX_FACT) ?? null,
      forwardedFor: String(headers["x-forwarded-for"] ?? "").slice(-MAX_FACT) || null,
    });
  }

  /** The parsed JSON body, before it is checked. */
  receive(input: unknown): void {
    this.#input = input;
  }

  /** Runs the handler. `readBefore` returns the resource before the change; null if there is none. */
  async run(managed: ManagedRequest, readBefore: () => Promise<unknown>): Promise<Reply> {
    this.#managed = managed;
    this.#before = await readBefore();
    this.#pending.prepare({ request: this.#input, before: this.#before });
    return currentWrite.run(this.#pending, async () => this.#parts.route.handler(managed));
  }

  async succeed(reply: Reply): Promise<void> {
    // The store recorded the whole change with it.
    if (this.#pending.isComplete) return;
    const { result } = reply;
    const isDeletion = this.#parts.route.method === "DELETE";
    // What such a route returns is data of its caller, not the state of a resource.
    const changedNothing = this.#parts.route.changesNothing === true;
    const createdId = isFields(result) && typeof result["id"] === "string" ? result["id"] : undefined;
    await this.#pending.finish({
      outcome: "success",
      status: reply.status ?? 200,
      code: null,
      message: null,
      changedNothing,
      request: this.#inputOf(),
      before: this.#before ?? (isDeletion ? result : undefined),
      after: isDeletion || changedNothing ? null : (result ?? reply.resultInfo),
      resourceId: resourceIdOf(this.#parts.route, this.#parts.params) === "" ? createdId : undefined,
    });
  }

  async fail(error: unknown): Promise<void> {
    const known = toSignalboxError(error);
    const result: WriteResult = {
      outcome: known.status < 500 ? "refused" : "failed",
      status: known.status,
      code: known.code,
      message: known.message,
      request: this.#inputOf(),
      before: this.#before,
      resourceId: this.#wantedId(),
    };
    await this.#pending.finish(result);
  }

  /** The id that a refused creation asked for. */
  #wantedId(): string | undefined {
    const { route, params } = this.#parts;
    const { action, parameter } = describeRoute(route);
    if (action !== "create" || params[parameter] !== undefined || !isFields(this.#input)) return undefined;
    const { id } = this.#input;
    return typeof id === "string" ? id.slice(0, MAX_FACT) : undefined;
  }

  #inputOf(): unknown {
    const body = this.#managed?.bodyRead;
    if (this.#input !== undefined || body === undefined) return this.#input;
    if (body.length > MAX_RAW_BODY) return { truncated: true, bytes: body.length };
    try {
      return JSON.parse(body.toString("utf8")) as unknown;
    } catch {
      return { bytes: body.length };
    }
  }
}

/**
 * A write belongs to the account of the token, also if the token tries to write elsewhere: the account it tried learns nothing of foreign
 * tokens. The root token writes in the account of the path. Writes of unknown callers belong to no account.
 */
function accountOf(principal: Principal | null, { params, hasAccount }: WriteParts): string {
  if (principal === null) return "";
  if (principal.kind === "token") return principal.token.accountId;
  const accountId = params["account_id"];
  return accountId !== undefined && hasAccount(accountId) ? accountId : "";
}

/** What the method and the path template of a route say about its writes. */
interface RouteDescription {
  readonly action: string;
  readonly operation: string;
  readonly resourceType: string;
  /** The path parameter with the id of the resource; empty if there is none. */
  readonly parameter: string;
}

const descriptions = new WeakMap<object, RouteDescription>();

/** The last collection of the path and the id in it; of an action, those of the resource before it. */
export function describeRoute(route: Pick<Route, "method" | "effect" | "path">): RouteDescription {
  const known = descriptions.get(route);
  if (known !== undefined) return known;
  const { method, path } = route;
  const segments = path.slice(1).split("/");
  const last = segments.at(-1) ?? "";
  const isAction = route.effect === "action";
  const own = isAction ? segments.slice(0, -1) : segments;
  const end = own.at(-1) ?? "";
  const isOne = end.startsWith("{");
  const description = {
    action: isAction ? last : method === "POST" ? "create" : method === "DELETE" ? "delete" : "update",
    operation: `${method} ${path}`,
    resourceType: (isOne ? own.at(-2) : end) ?? "",
    parameter: isOne ? end.slice(1, -1) : "",
  };
  descriptions.set(route, description);
  return description;
}

function resourceIdOf(route: Route, params: Readonly<Record<string, string>>): string {
  return (params[describeRoute(route).parameter] ?? "").slice(0, MAX_FACT);
}
