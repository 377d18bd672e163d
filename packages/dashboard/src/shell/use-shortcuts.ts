/** Keys that work on every page: see the list that `?` opens. None of them works while a text is typed or a dialog is open, but for the palette. */
import { useEffect, useRef } from "react";
import { navigate } from "../routing/location.ts";
import type { Session } from "../session/session.ts";
import { DESTINATIONS, isAllowed } from "./destinations.ts";

interface ShortcutActions {
  readonly onPalette: () => void;
  readonly onKeys: () => void;
}

/** The second key after `g` comes within this time. */
const SEQUENCE_MS = 1200;

export function useShortcuts(session: Session, accountId: string, actions: ShortcutActions): void {
  const newest = useRef({ session, accountId, actions });
  newest.current = { session, accountId, actions };
  useEffect(() => {
    let goUntil = 0;
    const onKeyDown = (event: KeyboardEvent) => {
      const { actions: act } = newest.current;
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        if (document.querySelector("dialog[open]") === null) act.onPalette();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const isSecond = performance.now() < goUntil;
      goUntil = 0;
      if (isSecond && goTo(event.key, newest.current.session, newest.current.accountId))
        event.preventDefault();
      else if (event.key === "g") goUntil = performance.now() + SEQUENCE_MS;
      else if (event.key === "?") act.onKeys();
      else if (event.key === "/" && focusSearch()) event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

function goTo(key: string, session: Session, accountId: string): boolean {
  const destination = DESTINATIONS.find((one) => one.key === key && isAllowed(one, session));
  if (destination === undefined) return false;
  navigate(`/accounts/${[accountId, ...destination.page].map(encodeURIComponent).join("/")}`);
  return true;
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>(
    '#content input[type="search"], #content [role="combobox"]',
  );
  field?.focus();
  return field !== null;
}

/** Whether a key that is pressed there is text. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input, textarea, select, [role='slider']");
}
