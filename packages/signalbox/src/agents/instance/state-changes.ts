/** What a turn changed in the state: the members that differ, with their values before and after. Computed when the turn is recorded, so that a record stays small. */
import { boundedJson } from "../../core/bounded-json.ts";

export interface StateChange {
  readonly path: readonly string[];
  /** JSON in bounded length; null if the member was added. */
  readonly before: string | null;
  /** JSON in bounded length; null if the member was removed. */
  readonly after: string | null;
}

export interface StateChanges {
  readonly changes: readonly StateChange[];
  /** There may be more: the states are too large or too deep to be compared. */
  readonly isCut: boolean;
}

/** Comparing states of this length takes about half a millisecond. */
const MAX_COMPARED = 32 * 1024;
const MAX_CHANGES = 30;
const MAX_VALUE = 400;
const MAX_PATH = 200;
/** Deeper members are not compared: states are as deep as their authors like, and the stack is not. */
const MAX_DEPTH = 12;

/** `before` and `after` are JSON; null before the first state. */
export function stateChanges(before: string | null, after: string | null): StateChanges {
  if (before === after) return { changes: [], isCut: false };
  if ((before?.length ?? 0) + (after?.length ?? 0) > 2 * MAX_COMPARED) return { changes: [], isCut: true };
  const changes: StateChange[] = [];
  const isCut = compare(parse(before), parse(after), [], changes);
  return { changes, isCut };
}

/** A member that does not exist. */
const NONE = Symbol("none");

function parse(json: string | null): unknown {
  return json === null ? NONE : JSON.parse(json);
}

/** Returns true when there may be more changes. */
function compare(before: unknown, after: unknown, path: readonly string[], changes: StateChange[]): boolean {
  if (Object.is(before, after)) return false;
  if (path.length === MAX_DEPTH) return true;
  if (isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const isCut = compare(
        memberOf(before, name),
        memberOf(after, name),
        [...path, name.slice(0, MAX_PATH)],
        changes,
      );
      if (isCut) return true;
    }
    return false;
  }
  if (changes.length === MAX_CHANGES) return true;
  changes.push({ path, before: toText(before), after: toText(after) });
  return false;
}

function isContainer(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function memberOf(value: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : NONE;
}

function toText(value: unknown): string | null {
  return value === NONE ? null : boundedJson(value, MAX_VALUE);
}
