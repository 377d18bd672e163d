/** Records logins and logouts of the dashboard in the audit log. They are not management requests. */
import { SignalboxError } from "@signalbox/protocol";
import { auditActor, type Principal } from "../accounts/index.ts";
import type { AuditTrail, PendingWrite, WriteResult } from "../contracts/audit-trail.ts";
import type { HttpRequest } from "../engines/http-server/index.ts";

export interface SessionEvent {
  readonly request: HttpRequest;
  readonly requestId: string;
  readonly action: "login" | "logout";
  readonly operation: string;
  /** Null if the credential was refused. */
  readonly principal: Principal | null;
}

/** Runs the change of the session and records it before it is answered. */
export async function recordSession<T>(
  audit: AuditTrail,
  event: SessionEvent,
  change: () => Promise<T>,
): Promise<T> {
  const write = begin(audit, event);
  let result: T;
  try {
    result = await change();
  } catch (error) {
    await write.finish(failure(error));
    throw error;
  }
  await write.finish({ outcome: "success", status: 200, code: null, message: null });
  return result;
}

function begin(
  audit: AuditTrail,
  { request, requestId, action, operation, principal }: SessionEvent,
): PendingWrite {
  return audit.begin({
    accountId: principal?.kind === "token" ? principal.token.accountId : "",
    requestId,
    actor: auditActor(principal, request),
    action,
    operation,
    resourceType: "sessions",
    resourceId: "",
    path: operation.slice(operation.indexOf("/")),
    userAgent: request.headers["user-agent"]?.slice(0, 256) ?? null,
    forwardedFor: String(request.headers["x-forwarded-for"] ?? "").slice(-256) || null,
  });
}

function failure(error: unknown): WriteResult {
  const { status, code, message } = error instanceof SignalboxError ? error : new SignalboxError("internal");
  return { outcome: status < 500 ? "refused" : "failed", status, code, message };
}
