/** Server-sent events of model APIs, as far as the gateway has to understand them: where they end, and whether one is an error. */

export interface StreamEvent {
  /** The `event` field; empty when there is none. */
  readonly name: string;
  /** The `data` lines, joined with line breaks. */
  readonly data: string;
}

/** Splits a stream into events. Events without data (comments, keep-alives) are left out. */
export class EventSplitter {
  #rest = "";
  readonly #decoder = new TextDecoder();

  /** The events that the chunk completes; with `isLast` also an event without the blank line behind it. */
  push(chunk: Buffer, isLast: boolean): StreamEvent[] {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: !isLast });
    const blocks = text.split(/\r\n\r\n|\n\n|\r\r/);
    this.#rest = isLast ? "" : (blocks.pop() ?? "");
    return blocks.map(toEvent).filter(({ data, name }) => data !== "" || name === "error");
  }
}

function toEvent(block: string): StreamEvent {
  let name = "";
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
  return { name, data: data.join("\n") };
}

/** True for an `error` event, `{"error":…}` and `response.failed`. */
export function isErrorEvent({ name, data }: StreamEvent): boolean {
  if (name === "error" || name === "response.failed") return true;
  if (!data.includes('"error"') && !data.includes('"response.failed"')) return false;
  const value = parse(data);
  if (value === null) return false;
  return value["type"] === "error" || value["type"] === "response.failed" || hasError(value);
}

/** True for `{"error":…}`, in which every API but Anthropic's states one. */
export function hasError(value: Readonly<Record<string, unknown>> | null): boolean {
  const error = value?.["error"];
  return error !== undefined && error !== null && error !== false;
}

const OPENING_TYPES: ReadonlySet<unknown> = new Set([
  "message_start",
  "ping",
  "response.created",
  "response.queued",
  "response.in_progress",
]);

/** True for an event that only opens the stream and has no content yet. */
export function isOpeningEvent({ data }: StreamEvent): boolean {
  const value = parse(data);
  if (value === null) return false;
  if (OPENING_TYPES.has(value["type"])) return true;
  const { choices } = value;
  return Array.isArray(choices) && choices.length > 0 && choices.every(isEmptyChoice);
}

function isEmptyChoice(choice: unknown): boolean {
  if (typeof choice !== "object" || choice === null) return false;
  const { delta, finish_reason: reason } = choice as Record<string, unknown>;
  if (reason !== undefined && reason !== null) return false;
  if (typeof delta !== "object" || delta === null) return false;
  return Object.entries(delta).every(
    ([name, value]) => name === "role" || value === null || value === "" || isEmptyList(value),
  );
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function parse(data: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
