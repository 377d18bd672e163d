/** Which columns of the log this browser shows. */
import { useSyncExternalStore } from "react";

/** In the order in which they are shown. Time, status and prompt are always there. */
export const OPTIONAL_COLUMNS = [
  ["gateway", "Gateway"],
  ["provider", "Provider"],
  ["answer", "Answer"],
  ["user", "User"],
  ["metadata", "Metadata"],
  ["duration", "Duration"],
  ["firstByte", "First byte"],
  ["tokens", "Tokens"],
  ["cost", "Cost"],
] as const;

export type LogColumn = (typeof OPTIONAL_COLUMNS)[number][0];

const INITIAL: readonly LogColumn[] = ["gateway", "answer", "user", "duration", "tokens", "cost"];
const KEY = "signalbox-log-columns";
const CHANGED = "signalbox:log-columns";

/** The text in the storage, or since the page was opened: the browser may block storage. */
let current: string | null = null;

export function useLogColumns(): [ReadonlySet<LogColumn>, (column: LogColumn, isShown: boolean) => void] {
  const text = useSyncExternalStore(subscribe, read);
  const shown = parse(text);
  const set = (column: LogColumn, isShown: boolean) => {
    const next = new Set(shown);
    if (isShown) next.add(column);
    else next.delete(column);
    write([...next].join(","));
  };
  return [shown, set];
}

function parse(text: string): Set<LogColumn> {
  const known = new Set<string>(OPTIONAL_COLUMNS.map(([name]) => name));
  return new Set(text.split(",").filter((name): name is LogColumn => known.has(name)));
}

function read(): string {
  if (current !== null) return current;
  try {
    current = localStorage.getItem(KEY);
  } catch {
    // The columns then last until the page is reloaded.
  }
  return (current ??= INITIAL.join(","));
}

function write(text: string): void {
  current = text;
  try {
    localStorage.setItem(KEY, text);
  } catch {
    // See above.
  }
  dispatchEvent(new Event(CHANGED));
}

function subscribe(onChange: () => void): () => void {
  addEventListener(CHANGED, onChange);
  return () => removeEventListener(CHANGED, onChange);
}
