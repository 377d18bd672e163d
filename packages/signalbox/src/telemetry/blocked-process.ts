/** Logs which code blocks the process, while it does: an endless loop would otherwise leave no trace. See docs/decisions/0536. */
import { userPlace, withoutOwnFrames } from "../core/own-frames.ts";
import { LoopWatch } from "../engines/loop-watch/index.ts";
import { currentTurn, type Turn } from "../engines/turn-runtime/index.ts";
import type { Logger } from "./logger.ts";

/** Enough for the user's frames below those of libraries. */
const MAX_FRAMES = 50;

export function watchBlocking(logger: Logger): LoopWatch {
  let last: Blocker | null = null;
  return new LoopWatch({
    onBlocked(blockedMs) {
      const stack = stackHere();
      const at = userPlace(stack);
      const blocker = describe(currentTurn(), at !== undefined);
      last = blocker;
      logger[blocker.isUsers ? "error" : "warn"](
        {
          ...blocker.fields,
          blocked_ms: Math.round(blockedMs),
          at,
          stack: withoutOwnFrames(stack).trim(),
        },
        `${blocker.who} has blocked the process for ${seconds(blockedMs)}: nothing else runs until it returns or awaits`,
      );
    },
    onEnd(blockedMs) {
      const { who = "", fields = {} } = last ?? {};
      last = null;
      logger.warn(
        { ...fields, blocked_ms: Math.round(blockedMs) },
        `${who} had blocked the process for ${seconds(blockedMs)}; it goes on`,
      );
    },
  });
}

interface Blocker {
  /** Code of agents, or a module that they load; otherwise this package. */
  readonly isUsers: boolean;
  /** `notes/me: forever()`. */
  readonly who: string;
  readonly fields: object;
}

function describe(turn: Turn | undefined, hasPlace: boolean): Blocker {
  const owner: { readonly ref?: Ref } | undefined = turn?.owner;
  const ref = owner?.ref;
  if (turn === undefined || ref === undefined)
    return { isUsers: hasPlace, who: hasPlace ? "code outside of turns" : "Signalbox itself", fields: {} };
  const { account, agent, name } = ref;
  const { kind, label } = turn;
  return {
    isUsers: true,
    who: `${agent}/${name}: ${kind === "rpc" ? `${label}()` : `${kind} ${label}`.trim()}`,
    fields: { account, agent, instance: name, kind, method: label },
  };
}

/** Of the owner of a turn. */
interface Ref {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
}

/** The frames alone: the message of an error has none of the code's values. */
function stackHere(): string {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = MAX_FRAMES;
  try {
    const lines = String(new Error("blocked").stack).split("\n").slice(1);
    // From the bottom up to the call of the inspector.
    const call = lines.findIndex((line) => /^\s+at <anonymous>:1:\d+$/.test(line));
    return lines.slice(call + 1).join("\n");
  } finally {
    Error.stackTraceLimit = before;
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
