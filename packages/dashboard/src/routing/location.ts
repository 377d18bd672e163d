/** The current path below `/dashboard` and the query string, synchronized with the browser's history. */
import { useCallback, useSyncExternalStore } from "react";

const BASE = "/dashboard";
const NAVIGATED = "signalbox:navigated";

export interface PageLocation {
  /** Decoded path segments below `/dashboard`. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

/** `to` is a path below `/dashboard`, e.g. `/accounts/default/tags?tag=x`. */
export function navigate(
  to: string,
  { replace = false, keepsPlace = false }: { replace?: boolean; keepsPlace?: boolean } = {},
): void {
  const url = hrefOf(to);
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(history.state, "", url);
  else {
    history.pushState(null, "", url);
    // A new page starts at the top. For "back", the browser restores the scroll position.
    if (!keepsPlace) scrollTo(0, 0);
  }
  dispatchEvent(new Event(NAVIGATED));
}

export function hrefOf(to: string): string {
  return BASE + to;
}

export function usePageLocation(): PageLocation {
  const url = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  const [path = "", query = ""] = url.split("?");
  const segments = path
    .slice(BASE.length)
    .split("/")
    .filter((segment) => segment !== "")
    .map(decode);
  return { segments, query: new URLSearchParams(query) };
}

/**
 * One query parameter as state. The initial value is omitted from the URL. Changes replace the history entry, so "back" leaves the page.
 */
export function useQueryValue(name: string, initial = ""): [string, (value: string) => void] {
  const value = useSyncExternalStore(
    subscribe,
    () => new URLSearchParams(location.search).get(name) ?? initial,
  );
  const set = useCallback(
    (next: string) => setQueryValues({ [name]: next === initial ? null : next }),
    [name, initial],
  );
  return [value, set];
}

/** Changes several query parameters at once. Null removes a parameter. `isStep`: "back" returns to the values before, not to the page before. */
export function setQueryValues(
  values: Readonly<Record<string, string | null>>,
  { isStep = false }: { readonly isStep?: boolean } = {},
): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === null) query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(location.pathname.slice(BASE.length) + (text === "" ? "" : `?${text}`), {
    replace: !isStep,
    keepsPlace: true,
  });
}

function subscribe(onChange: () => void): () => void {
  addEventListener("popstate", onChange);
  addEventListener(NAVIGATED, onChange);
  return () => {
    removeEventListener("popstate", onChange);
    removeEventListener(NAVIGATED, onChange);
  };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
