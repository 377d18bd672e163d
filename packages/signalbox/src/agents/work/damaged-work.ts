/**
 * Checks of the rows of queue and schedules. A damaged database can return a row that no statement can change, or one that is due according to one
 * statement and not to another: such work would run, or be looked for, without end. The pump pauses on the error instead.
 */

export class DamagedWorkError extends Error {
  override readonly name = "DamagedWorkError";

  constructor() {
    super("the instance's queue or schedules are damaged: work that is due can be read but not changed");
  }
}

export function requireChange(changes: number): void {
  if (changes === 0) throw new DamagedWorkError();
}

/** A column of integers can hold any value in a damaged file; SQLite and JavaScript compare a text with a number differently. */
export function requireNumber(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw new DamagedWorkError();
  return value;
}
