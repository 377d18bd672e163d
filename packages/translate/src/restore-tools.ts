/** Tool calls of the target under the names and kinds that the client defined. */
import type { ToolCallPart } from "./neutral/part.ts";
import type { NeutralResponse } from "./neutral/response.ts";
import type { StreamEvent } from "./neutral/stream-event.ts";
import type { OriginalTool } from "./options.ts";
import { unwrapCustomInput } from "./tool-format.ts";

type Renamed = ReadonlyMap<string, OriginalTool>;

export function restoreTools(response: NeutralResponse, renamed: Renamed): NeutralResponse {
  if (renamed.size === 0) return response;
  const parts = response.parts.map((part) => (part.type === "tool_call" ? restoreCall(part, renamed) : part));
  return { ...response, parts };
}

function restoreCall(part: ToolCallPart, renamed: Renamed): ToolCallPart {
  const original = renamed.get(part.name);
  if (original === undefined) return part;
  return {
    ...part,
    name: original.name,
    ...(original.namespace === null ? {} : { namespace: original.namespace }),
    ...(original.custom ? { isCustom: true, arguments: unwrapCustomInput(part.arguments) } : {}),
  };
}

/**
 * The same for a stream. The arguments of a custom tool are JSON with the free text inside, so they are held until the
 * call is whole and then sent as one delta.
 */
export class StreamToolRestorer {
  readonly #renamed: Renamed;
  readonly #held = new Map<number, string>();

  constructor(renamed: Renamed) {
    this.#renamed = renamed;
  }

  restore(event: StreamEvent, emit: (event: StreamEvent) => void): void {
    if (event.type === "tool_start") {
      const original = this.#renamed.get(event.name);
      if (original === undefined) emit(event);
      else {
        if (original.custom) this.#held.set(event.key, "");
        const { name, namespace, custom } = original;
        emit({ ...event, name, namespace, isCustom: custom || event.isCustom });
      }
    } else if (event.type === "tool_delta" && this.#held.has(event.key)) {
      this.#held.set(event.key, (this.#held.get(event.key) ?? "") + event.text);
    } else if (event.type === "tool_end" && this.#held.has(event.key)) {
      emit({ type: "tool_delta", key: event.key, text: unwrapCustomInput(this.#held.get(event.key) ?? "") });
      this.#held.delete(event.key);
      emit(event);
    } else emit(event);
  }
}
