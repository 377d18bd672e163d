/** What a version answers on its data, so that later versions can be compared with it. */
import { sendRequest } from "../send-request.ts";

export interface Read {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
}

export interface AnsweredRead extends Read {
  readonly answer: unknown;
}

export async function readAll(url: string, reads: readonly Read[]): Promise<AnsweredRead[]> {
  const answered: AnsweredRead[] = [];
  for (const read of reads) {
    const { status, body, text } = await sendRequest({ url }, read.method, read.path, read.body);
    if (status !== 200) throw new Error(`${read.method} ${read.path}: ${status} ${text}`);
    answered.push({ ...read, answer: body });
  }
  return answered;
}

/** The members that are the same in both; undefined for values that differ. A list of another length differs as a whole. */
export function inBoth(a: unknown, b: unknown): unknown {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length ? a.map((one: unknown, i) => inBoth(one, b[i])) : undefined;
  if (isObject(a) && isObject(b))
    return Object.fromEntries(
      Object.entries(a)
        .map(([name, value]) => [name, Object.hasOwn(b, name) ? inBoth(value, b[name]) : undefined] as const)
        .filter(([, value]) => value !== undefined),
    );
  return a === b ? a : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
