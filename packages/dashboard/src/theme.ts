/** The color theme. It follows the operating system unless the user selects one, which is stored in this browser. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEY = "signalbox-theme";
const CHANGED = "signalbox:theme";

/** The theme since the page was opened: the browser may block storage. */
let current: Theme | null = null;

export function readTheme(): Theme {
  if (current !== null) return current;
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function saveTheme(theme: Theme): void {
  current = theme;
  applyTheme(theme);
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // The theme then lasts until the page is reloaded.
  }
  dispatchEvent(new Event(CHANGED));
}

/** Changes from the theme that is shown to the other one. */
export function toggleTheme(): void {
  const theme = readTheme();
  const isDark =
    theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  saveTheme(isDark ? "light" : "dark");
}

export function useTheme(): Theme {
  return useSyncExternalStore((onChange) => {
    addEventListener(CHANGED, onChange);
    return () => removeEventListener(CHANGED, onChange);
  }, readTheme);
}
