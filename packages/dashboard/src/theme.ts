/** Light or dark: the system's choice until the reader makes one, which this browser then keeps. */
export type Theme = "system" | "light" | "dark";

const KEY = "signalbox-theme";

export function readTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    // Storage can be forbidden; the system's choice is a fine answer then.
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function saveTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Applied for this page only.
  }
}
