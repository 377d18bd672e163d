/**
 * The paths that start the worker's other handlers, with the names that the originals' development server uses:
 *
 *   POST /cdn-cgi/handler/email?from=a@example.com&to=b@example.com   the body is the message; for a mail server's pipe or an inbound mail service
 *   POST /cdn-cgi/handler/scheduled?cron=*+*+*+*+*                    runs `scheduled` now; GET too, as the originals do
 *
 * Both require a token with `agents.edit`: they act in the name of the operator.
 */
import { SignalboxError } from "@signalbox/protocol";
import { type Authenticator, isAllowed } from "../../accounts/index.ts";
import type { HttpRequest, HttpResponse } from "../../engines/http-server/index.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { WorkerRuntime } from "../program/worker-runtime.ts";
import { createEmailEvent, type EmailVerdict } from "./email-event.ts";

export interface EventPathParts {
  readonly authenticator: Authenticator;
  readonly account: string;
  readonly maxBodyBytes: number;
  readonly runtime: WorkerRuntime;
  now(): number;
}

const PREFIX = "/cdn-cgi/handler/";

export class EventPaths {
  readonly #parts: EventPathParts;

  constructor(parts: EventPathParts) {
    this.#parts = parts;
  }

  owns(path: string): boolean {
    return path.startsWith(PREFIX);
  }

  async handle(request: HttpRequest, response: HttpResponse, context: RequestContext): Promise<void> {
    // Pages of the worker share the origin of the dashboard, so a session is no credential here.
    const principal = this.#parts.authenticator.fromHeader(request.headers.authorization);
    if (principal === null) throw new SignalboxError("unauthenticated");
    if (!isAllowed(principal, this.#parts.account, "agents.edit")) throw new SignalboxError("forbidden");
    const query = new URLSearchParams(context.query);
    const event = context.path.slice(PREFIX.length);
    if (event === "scheduled") await this.#runScheduled(query);
    else if (event === "email") await this.#receive(request, query, context);
    else throw new SignalboxError("not_found");
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
    response.end("ok\n");
  }

  async #runScheduled(query: URLSearchParams): Promise<void> {
    const { runtime, now } = this.#parts;
    const cron = query.get("cron") ?? "";
    const time = Number(query.get("time") ?? now());
    if (!Number.isFinite(time))
      throw new SignalboxError("invalid_request", { message: "time must be a number" });
    const wasRun = await run(() => runtime.scheduled({ cron, scheduledTime: time }));
    if (!wasRun) throw new SignalboxError("not_found", { message: "The worker has no scheduled handler" });
  }

  async #receive(request: HttpRequest, query: URLSearchParams, context: RequestContext): Promise<void> {
    if (request.method !== "POST")
      throw new SignalboxError("method_not_allowed", { headers: { allow: "POST" } });
    const from = query.get("from") ?? "";
    const to = query.get("to") ?? "";
    if (from === "" || to === "")
      throw new SignalboxError("invalid_request", { message: "from and to are required in the query" });
    const raw = await context.readBody(this.#parts.maxBodyBytes);
    const verdict: EmailVerdict = { rejection: null };
    const wasRun = await run(() => this.#parts.runtime.email(createEmailEvent({ from, to, raw }, verdict)));
    if (!wasRun) throw new SignalboxError("not_found", { message: "The worker has no email handler" });
    if (verdict.rejection !== null)
      throw new SignalboxError("worker_rejected_email", {
        message: `The worker rejected the email: ${verdict.rejection}`,
      });
  }
}

async function run(handler: () => Promise<boolean>): Promise<boolean> {
  try {
    return await handler();
  } catch (cause) {
    throw new SignalboxError("worker_failed", { cause });
  }
}
