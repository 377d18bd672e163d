/**
 * JSON of any value in a bounded number of characters and steps: for people who look at a value, not for programs that read it back. What is left out
 * is marked with `…`. Never throws; a value of a hundred megabytes costs no more than one that fits.
 */
const MAX_DEPTH = 12;
const CUT = "…";

export function boundedJson(value: unknown, maxChars: number): string {
  const budget = { left: maxChars };
  try {
    return JSON.stringify(copy(value, budget, 0)) ?? "null";
  } catch {
    // A getter or `toJSON` of the value failed.
    return JSON.stringify(CUT);
  }
}

interface Budget {
  left: number;
}

function copy(value: unknown, budget: Budget, depth: number): unknown {
  budget.left -= 2;
  switch (typeof value) {
    case "string":
      return copyText(value, budget);
    case "bigint":
      return copyText(String(value), budget);
    case "number":
      budget.left -= 8;
      return value;
    case "object":
      return value === null ? null : copyObject(value, budget, depth);
    case "boolean":
      return value;
    default:
      return undefined;
  }
}

function copyText(text: string, budget: Budget): string {
  const room = Math.max(0, budget.left);
  budget.left -= text.length;
  return text.length <= room ? text : text.slice(0, room) + CUT;
}

function copyObject(value: object, budget: Budget, depth: number): unknown {
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (value instanceof ArrayBuffer) return `${value.byteLength} bytes`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (depth >= MAX_DEPTH || budget.left <= 0) return CUT;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const item of value as readonly unknown[]) {
      if (budget.left <= 0) {
        items.push(CUT);
        break;
      }
      items.push(copy(item, budget, depth + 1));
    }
    return items;
  }
  const members: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  // `for in`, because `Object.entries` would list a million members first.
  for (const name in value) {
    if (!Object.hasOwn(value, name)) continue;
    if (budget.left <= 0) {
      members[CUT] = CUT;
      break;
    }
    members[copyText(name, budget)] = copy((value as Record<string, unknown>)[name], budget, depth + 1);
  }
  return members;
}
