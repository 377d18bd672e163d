/** Who is logged in. The credential itself is an HttpOnly cookie: the page never sees or stores it. */
import { createContext, useContext } from "react";
import type { Permission } from "@signalbox/protocol";
import { ask, read } from "../http/api.ts";

export interface Session {
  readonly is_root: boolean;
  readonly token_name: string | null;
  readonly permissions: readonly Permission[];
  readonly accounts: readonly { readonly id: string; readonly name: string }[];
  readonly expires_at: string;
  readonly version: string;
  /** The gateway that the token is bound to, if it is. */
  readonly gateway_id: string | null;
  /** Where calls and webhooks go, when that is not the dashboard's own address. */
  readonly traffic_url: string | null;
}

export const SESSION_PATH = "/dashboard/session";

export function readSession(): Promise<Session | null> {
  return read<Session | null>(SESSION_PATH);
}

export async function logIn(token: string): Promise<Session> {
  return (await ask<Session>(SESSION_PATH, { method: "POST", body: { token } })).result;
}

export async function logOut(): Promise<void> {
  await ask(SESSION_PATH, { method: "DELETE" });
  tabs?.postMessage("logout");
}

/** Other tabs of this browser lose their session with this one's logout. */
const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("signalbox-session");

export function onOtherTabLogout(react: () => void): () => void {
  const listen = (event: MessageEvent) => {
    if (event.data === "logout") react();
  };
  tabs?.addEventListener("message", listen);
  return () => tabs?.removeEventListener("message", listen);
}

export interface AccountScope {
  readonly session: Session;
  readonly accountId: string;
}

export const ScopeContext = createContext<AccountScope | null>(null);

export function useScope(): AccountScope {
  const scope = useContext(ScopeContext);
  if (scope === null) throw new Error("used outside the account's pages");
  return scope;
}

/** Scheme, host and port for calls and webhooks. */
export function useTrafficOrigin(): string {
  return useScope().session.traffic_url ?? location.origin;
}

/** True when the session may do this in the account it looks at. */
export function useHasPermission(permission: Permission): boolean {
  return useScope().session.permissions.includes(permission);
}

/** Paths of the account: `api("tokens")` on the server, `page("tokens")` in the dashboard. */
export function useAccountPaths(): {
  api: (...parts: string[]) => string;
  page: (...parts: string[]) => string;
} {
  const { accountId } = useScope();
  const below = (parts: readonly string[]) =>
    `/accounts/${[accountId, ...parts].map(encodeURIComponent).join("/")}`;
  return { api: (...parts) => below(parts), page: (...parts) => below(parts) };
}
