import type { CallLog } from "../../engines/call-log/index.ts";

/** For the `messages` of a reply that lacks the calls of some days. */
export function unreadableMessages({ unreadableDays }: Pick<CallLog, "unreadableDays">): string[] {
  return unreadableDays.map(
    (day) => `The calls of ${day} are not included: a later release has written their file`,
  );
}
