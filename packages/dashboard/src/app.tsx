/** The root component: shows the login page without a session, and the account's pages with one. */
import { useCallback, useEffect, useState } from "react";
import { ErrorNotice } from "./components/error-notice.tsx";
import { Loading } from "./components/loading.tsx";
import { SESSION_LOST } from "./http/api.ts";
import { useResource } from "./http/use-resource.ts";
import { navigate, usePageLocation } from "./routing/location.ts";
import { LoginPage } from "./session/login-page.tsx";
import { onOtherTabLogout, readSession, type Session } from "./session/session.ts";
import { ConnectionBanner } from "./shell/connection-banner.tsx";
import { areaTitle } from "./shell/destinations.ts";
import { Logo } from "./shell/logo.tsx";
import { Shell } from "./shell/shell.tsx";

export function App() {
  return (
    <>
      <Pages />
      <ConnectionBanner />
    </>
  );
}

function Pages() {
  const initial = useResource("session", readSession);
  const [changed, setChanged] = useState<Session | null | undefined>(undefined);
  const session = changed === undefined ? initial.value : changed;
  const { segments } = usePageLocation();
  const clearSession = useCallback(() => setChanged(null), []);

  useEffect(() => {
    addEventListener(SESSION_LOST, clearSession);
    const unsubscribe = onOtherTabLogout(clearSession);
    return () => {
      removeEventListener(SESSION_LOST, clearSession);
      unsubscribe();
    };
  }, [clearSession]);

  // The account is part of the URL, so every page can be linked to.
  const accountId = segments[0] === "accounts" ? segments[1] : undefined;
  const fallback = session?.accounts[0]?.id;
  useEffect(() => {
    if (session != null && accountId === undefined && fallback !== undefined)
      navigate(`/accounts/${encodeURIComponent(fallback)}`, { replace: true });
  }, [session, accountId, fallback]);

  if (session === undefined) {
    if (initial.error === null) return <Opening area={segments[2] ?? ""} />;
    return (
      <main className="standalone">
        <ErrorNotice error={initial.error} onRetry={initial.reload} />
      </main>
    );
  }
  if (session === null) return <LoginPage onLogin={setChanged} />;
  if (accountId === undefined) return null;
  return <Shell session={session} accountId={accountId} page={segments.slice(2)} onLogout={clearSession} />;
}

/** The title of the page, and lines in place of what is not known yet: the server may take its time. */
function Opening({ area }: { readonly area: string }) {
  return (
    <main className="opening">
      <Logo />
      <p className="opening-title">{areaTitle(area)}</p>
      <Loading />
    </main>
  );
}
