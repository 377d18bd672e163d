/** The layout of every page: navigation, account and theme selection, logout, and the current page. */
import { Suspense, useCallback, useEffect, useRef, useState } from "react";
import { ErrorBoundary } from "../components/error-boundary.tsx";
import { PartLoading } from "../components/loading.tsx";
import { PageHeader } from "../components/page-header.tsx";
import { ScopeContext, type Session } from "../session/session.ts";
import { areaTitle } from "./destinations.ts";
import { Logo } from "./logo.tsx";
import { Navigation } from "./navigation.tsx";
import { PageRouter } from "./page-router.tsx";
import { CommandPalette } from "./palette/command-palette.tsx";
import { ShortcutsDialog } from "./palette/shortcuts-dialog.tsx";
import { SessionMenu } from "./session-menu.tsx";
import { useShortcuts } from "./use-shortcuts.ts";

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
            <Suspense fallback={<PageLoading area={page[0] ?? ""} />}>
              <PageRouter page={page} />
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
      {overlay === "palette" && (
        <CommandPalette onClose={closeOverlay} onLogout={onLogout} onKeys={openKeys} />
      )}
      {overlay === "keys" && <ShortcutsDialog onClose={closeOverlay} />}
    </ScopeContext>
  );
}

/** A page whose file is not loaded yet. */
function PageLoading({ area }: { readonly area: string }) {
  return (
    <>
      <PageHeader title={areaTitle(area)} />
      <PartLoading />
    </>
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
