/** Replays or discards many dead letters of an instance, in several of its turns. */
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import type { InstanceAccess } from "./instance-access.ts";

/** Dead letters of one call, and of one transaction. */
const MAX_LETTERS = 10_000;
const LETTERS_PER_TURN = 500;

/** Without ids: those that exist now, the oldest first. A letter that fails again meanwhile is a new one, and stays. */
export async function changeLetters(
  access: InstanceAccess,
  ref: InstanceRef,
  label: string,
  wanted: readonly string[] | undefined,
  change: (letters: DeadLetters, id: string) => boolean,
): Promise<{ count: number; remaining: number }> {
  const ids = wanted ?? (await access.change(ref, label, ({ deadLetters }) => deadLetters.ids(MAX_LETTERS)));
  let count = 0;
  let remaining = 0;
  for (let i = 0; i === 0 || i < ids.length; i += LETTERS_PER_TURN) {
    const some = ids.slice(i, i + LETTERS_PER_TURN);
    await access.change(ref, label, ({ deadLetters }) => {
      count += some.filter((id) => change(deadLetters, id)).length;
      // Before a letter can fail again.
      remaining = deadLetters.count();
    });
  }
  return { count, remaining };
}
