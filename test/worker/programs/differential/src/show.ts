/** Values, errors and orders as JSON that has the same text on every server. */

export type Transcript = [step: string, value: unknown][];

/** The steps of one case: each is a value, or the error that came instead. */
export class Notes {
  readonly steps: Transcript = [];

  async note(step: string, work: () => unknown): Promise<void> {
    this.steps.push([step, await outcome(work)]);
  }

  add(step: string, value: unknown): void {
    this.steps.push([step, show(value)]);
  }
}

export async function outcome(work: () => unknown): Promise<unknown> {
  try {
    return show(await work());
  } catch (error) {
    return { throws: show(error) };
  }
}

export function show(value: unknown): unknown {
  switch (typeof value) {
    case "bigint":
      return { bigint: String(value) };
    case "undefined":
      return { undefined: true };
    case "function":
      return { function: true };
    case "symbol":
      return { symbol: true };
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { number: String(value) };
    case "object":
      return value === null ? null : showObject(value);
    case "string":
      return value.replaceAll(/\b[0-9a-f]{64}\b/g, "an id of 64 digits");
    default:
      return value;
  }
}

function showObject(value: object): unknown {
  if (value instanceof Error) return showError(value);
  if (Array.isArray(value)) return Array.from(value, show);
  if (value instanceof Date) return { Date: value.getTime() };
  if (value instanceof RegExp) return { RegExp: String(value) };
  if (value instanceof Map) return { Map: [...value].map(show) };
  if (value instanceof Set) return { Set: [...value].map(show) };
  if (value instanceof ArrayBuffer) return { ArrayBuffer: [...new Uint8Array(value)] };
  if (ArrayBuffer.isView(value))
    return {
      [value.constructor.name]: [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)],
    };
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, show(inner)]));
}

/** Stacks name files of the server and are left out. */
function showError(error: Error): unknown {
  const names = ["remote", "retryable", "overloaded", "durableObjectReset"];
  const flags = names.filter((name) => error[name] === true);
  return { name: error.name, message: error.message, type: error.constructor.name, flags };
}
