/** For tests that count what happens in one day. */
import { setTimeout as sleep } from "node:timers/promises";

const DAY_MS = 86_400_000;
/** Longer than such a test, and well below its time limit. */
const ENOUGH_MS = 25_000;

/** Resolves when the day (UTC) does not end soon: limits of a day begin again at midnight. */
export async function longDay(): Promise<void> {
  const leftMs = DAY_MS - (Date.now() % DAY_MS);
  if (leftMs < ENOUGH_MS) await sleep(leftMs + 100);
}
