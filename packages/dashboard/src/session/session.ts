/** The session of the logged-in user. The credential is an HttpOnly cookie, which scripts cannot read. */
import type { AccountClient } from "@signalbox/client";
import { createContext, useContext, useMemo } from "react";
import type { Permission } from "@signalbox/protocol";
import { client, read, request } from "../http/api.ts";

export interface Session {
  readonly is_root: boolean;
  readonly token_name: string | null;
  readonly permissions: readonly Permission[];
  readonly accounts: readonly { readonly id: string; readonly name: string }[];
  readonly expires_at: string;
  readonly version: string;
  /** The only gateway that the token may use; null if it is not restricted to one. */
  readonly gateway_id: string | null;
  /** Origin for gateway calls and webhooks; null if it is the origin of the dashboard. */
  readonly traffic_url: string | null;
}

export const SESSION_PATH = "/dashboard/session";

export function readSession(): Promise<Session | null> {
  return read<Session | null>(SESSION_PATH);
}

export async function logIn(token: string): Promise<Session> {
  return (await request<Session>(SESSION_PATH, { method: "POST", body: { token } })).result;
}

export async function logOut(): Promise<void> {
  await request(SESSION_PATH, { method: "DELETE" });
  tabs?.postMessage("logout");
}

/** Notifies the other tabs of this browser of a logout. */
const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("signalbox-session");

export function onOtherTabLogout(callback: () => void): () => void {
  const listen = (event: MessageEvent) => {
    if (event.data === "logout") callback();
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
  if (scope === null) throw new Error("useScope must be called inside ScopeContext");
  return scope;
}

/** The management interface of the current account. */
export function useAccount(): AccountClient {
  const { accountId } = useScope();
  return useMemo(() => client.account(accountId), [accountId]);
}

/** Scheme, host and port for gateway calls and webhooks. */
export function useTrafficOrigin(): string {
  return useScope().session.traffic_url ?? location.origin;
}

/** Whether the session has the permission in the current account. */
export function useHasPermission(permission: Permission): boolean {
  return useScope().session.permissions.includes(permission);
}

/** Paths below the current account: `api("tokens")` in the management API, `page("tokens")` in the dashboard. */
export function useAccountPaths(): {
  api: (...parts: string[]) => string;
  page: (...parts: string[]) => string;
} {
  const { accountId } = useScope();
  const below = (parts: readonly string[]) =>
    `/accounts/${[accountId, ...parts].map(encodeURIComponent).join("/")}`;
  return { api: (...parts) => below(parts), page: (...parts) => below(parts) };
}
