/**
 * The overload rule of all areas: a limit is fixed, work above it is refused at once with 503 and `Retry-After`, and accepted work is never
 * dropped. No request is queued for a limit.
 */
import { SignalboxError } from "@signalbox/protocol";

/** Long enough for a burst to end, and short compared to the retry schedules of webhook providers. */
const RETRY_AFTER_SECONDS = "2";

/** Creates the error for refused work. `message` names the limit; `headers` are added to the response. */
export function overloaded(message?: string, headers: Readonly<Record<string, string>> = {}): SignalboxError {
  return new SignalboxError("overloaded", {
    ...(message === undefined ? {} : { message }),
    headers: { "retry-after": RETRY_AFTER_SECONDS, ...headers },
  });
}
