/** The layout of every page: navigation, account and theme selection, logout, and the current page. */
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { ErrorBoundary } from "../components/error-boundary.tsx";
import { Loading } from "../components/loading.tsx";
import { ScopeContext, type Session } from "../session/session.ts";
import { ConnectionBanner } from "./connection-banner.tsx";
import { Logo } from "./logo.tsx";
import { Navigation } from "./navigation.tsx";
import { PageRouter } from "./page-router.tsx";
import { SessionMenu } from "./session-menu.tsx";
import { useShortcuts } from "./use-shortcuts.ts";

const CommandPalette = lazy(async () => ({
  default: (await import("./palette/command-palette.tsx")).CommandPalette,
}));
const ShortcutsDialog = lazy(async () => ({
  default: (await import("./palette/shortcuts-dialog.tsx")).ShortcutsDialog,
}));

interface ShellProps {
  readonly session: Session;
  readonly accountId: string;
  /** Path segments below the account. */
  readonly page: readonly string[];
  readonly onLogout: () => void;
}

export function Shell({ session, accountId, page, onLogout }: ShellProps) {
  const [isOpen, setOpen] = useState(false);
  const [overlay, setOverlay] = useState<"palette" | "keys" | null>(null);
  const openPalette = useCallback(() => setOverlay("palette"), []);
  const openKeys = useCallback(() => setOverlay("keys"), []);
  const closeOverlay = useCallback(() => setOverlay(null), []);
  useShortcuts(session, accountId, { onPalette: openPalette, onKeys: openKeys });
  const path = page.join("/");
  useEffect(() => setOpen(false), [path]);
  useFocusOnNavigation(`${accountId}/${page[0] ?? ""}`);
  return (
    <ScopeContext value={{ session, accountId }}>
      <a className="skip-link" href="#content">
        Skip to content
      </a>
      <div className="app" data-menu={isOpen ? "open" : "closed"}>
        <header className="topbar">
          <Logo />
          <button
            type="button"
            className="button button-quiet menu-button"
            aria-expanded={isOpen}
            aria-controls="sidebar"
            onClick={() => setOpen(!isOpen)}
          >
            {isOpen ? "Close" : "Menu"}
          </button>
        </header>
        <aside className="sidebar" id="sidebar">
          <div className="sidebar-logo">
            <Logo />
          </div>
          <button type="button" className="button palette-button" onClick={openPalette}>
            Search <kbd>Ctrl K</kbd>
          </button>
          <Navigation current={page[0] ?? ""} />
          <SessionMenu onLogout={onLogout} />
        </aside>
        <main className="content" id="content" tabIndex={-1}>
          <ErrorBoundary key={`${accountId}/${page[0] ?? ""}`} path={path}>
            <Suspense fallback={<Loading />}>
              <PageRouter page={page} />
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
      <ConnectionBanner />
      <Suspense fallback={null}>
        {overlay === "palette" && (
          <CommandPalette onClose={closeOverlay} onLogout={onLogout} onKeys={openKeys} />
        )}
        {overlay === "keys" && <ShortcutsDialog onClose={closeOverlay} />}
      </Suspense>
    </ScopeContext>
  );
}

/** Moves the focus to the content after navigation, so screen readers announce the new page. Not on the first page load. */
function useFocusOnNavigation(area: string): void {
  const last = useRef(area);
  useEffect(() => {
    if (last.current === area) return;
    last.current = area;
    document.getElementById("content")?.focus();
  }, [area]);
}
