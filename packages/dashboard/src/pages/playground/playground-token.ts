import { useState } from "react";
import { type Session, useScope } from "../../session/session.ts";

/** Tokens of gateways by session: they live in memory only, and are gone with the session or the page. */
const tokens = new WeakMap<Session, Map<string, string>>();

/** The gateway token that the playground sends; empty for none. It survives a change of pages, not a reload. */
export function usePlaygroundToken(gatewayId: string): [string, (token: string) => void] {
  const { session, accountId } = useScope();
  const key = JSON.stringify([accountId, gatewayId]);
  const [token, setToken] = useState(() => tokens.get(session)?.get(key) ?? "");
  const keep = (next: string) => {
    const own = tokens.get(session) ?? new Map<string, string>();
    own.set(key, next);
    tokens.set(session, own);
    setToken(next);
  };
  return [token, keep];
}
