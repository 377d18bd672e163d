/** How much of a JSON value is shown at first. Messages come from anywhere: a value can have a million members or a million levels. */

/** Levels that are open at first. */
const MAX_OPEN_DEPTH = 3;
/** Members that are shown at first, unless the first level alone has more. */
const MAX_OPEN_MEMBERS = 400;

/** The number of levels that can be open without showing too many members. */
export function openDepth(value: unknown): number {
  let level = childrenOf(value);
  let shown = level.length;
  for (let depth = 1; depth < MAX_OPEN_DEPTH; depth++) {
    const next: unknown[] = [];
    for (const child of level) {
      const children = childrenOf(child);
      shown += children.length;
      if (shown > MAX_OPEN_MEMBERS) return depth;
      next.push(...children);
    }
    level = next;
  }
  return MAX_OPEN_DEPTH;
}

function childrenOf(value: unknown): readonly unknown[] {
  return typeof value === "object" && value !== null ? Object.values(value) : [];
}

/** The value as JSON; null if it has more levels than the stack has room for. */
export function jsonText(value: unknown, indent?: number): string | null {
  try {
    return JSON.stringify(value, null, indent) ?? null;
  } catch {
    return null;
  }
}
