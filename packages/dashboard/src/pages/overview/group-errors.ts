/** Failed calls by what was wrong: the same message of the same model is one error, however many calls have it. */
import type { FoundCall } from "@signalbox/client";

export interface ErrorGroup {
  readonly message: string;
  readonly provider: string;
  readonly model: string;
  readonly count: number;
  /** Time of the newest call. */
  readonly last: string;
}

export interface ErrorGroups {
  readonly groups: readonly ErrorGroup[];
  /** Calls that were grouped. */
  readonly calls: number;
}

type Failed = Pick<FoundCall, "answer" | "status_code" | "provider" | "model" | "created_at">;

/** Most frequent first. */
export function groupErrors(calls: readonly Failed[]): ErrorGroups {
  const groups = Map.groupBy(calls, (call) => JSON.stringify([messageOf(call), call.provider, call.model]));
  return {
    calls: calls.length,
    groups: [...groups.values()]
      .flatMap((own) => {
        const [first] = own;
        if (first === undefined) return [];
        const last = own.reduce((newest, { created_at: at }) => (at > newest ? at : newest), "");
        return [
          {
            message: messageOf(first),
            provider: first.provider,
            model: first.model,
            count: own.length,
            last,
          },
        ];
      })
      .sort((a, b) => b.count - a.count || (a.last < b.last ? 1 : -1)),
  };
}

/** Ids and numbers in a message are those of one call. */
function messageOf({ answer, status_code: status }: Failed): string {
  const text = (answer ?? "").replaceAll(
    /\b[0-9a-f-]{16,}\b|\breq_\w+|\d+(?:\.\d+)?(?=\s*(?:s|ms|seconds)\b)/gi,
    "…",
  );
  return text === "" ? `Status ${status}` : `${status}: ${text}`;
}
