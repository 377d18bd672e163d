/** The caller as the audit log names it. */
import type { AuditActor } from "../contracts/audit-trail.ts";
import type { HttpRequest } from "../engines/http-server/index.ts";
import type { Principal } from "./principal.ts";

/** Characters of a session's hash that identify it and cannot be used to log in. */
const SESSION_ID_LENGTH = 12;

/** `principal` is null if the credential was refused. */
export function auditActor(principal: Principal | null, { socket }: HttpRequest): AuditActor {
  // A call from inside the process has no socket.
  const address = (socket as { readonly remoteAddress?: string } | undefined)?.remoteAddress;
  const ip = address?.replace(/^::ffff:/, "") ?? null;
  if (principal === null) return { type: "anonymous", id: "", name: "", session: null, ip };
  const session = principal.session?.hash.slice(0, SESSION_ID_LENGTH) ?? null;
  if (principal.kind === "root") return { type: "root", id: "", name: "root", session, ip };
  return { type: "token", id: principal.token.id, name: principal.token.name, session, ip };
}
