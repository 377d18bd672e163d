/** What the messages of a session mean, as far as the gateway must know: which models they name, where responses begin and end, what was used. */
import { type Fields, isFields } from "../../core/fields.ts";
import type { Usage } from "../../engines/relay/index.ts";

export interface ClientMessage {
  /** The provider begins to work when it has received the message. */
  readonly startsResponse: boolean;
  /** Every model that the message names, wherever the provider might read it. */
  readonly models: readonly string[];
  /** The model of the session from now on, or of the response that the message starts; absent when the message names none. */
  readonly model?: string;
  /** The model that writes down what was said; absent when the message names none. */
  readonly transcriptionModel?: string;
  /** The limit of the output; null: there is none. Absent when the message says nothing about it. */
  readonly maxOutputTokens?: number | null;
  /** The size of sound and pictures in it. */
  readonly mediaBytes: number;
  readonly eventId: string | null;
}

export interface ProviderMessage {
  /** The provider has begun a response. */
  readonly begins?: true;
  /** The response has ended. */
  readonly ends?: true;
  /** The response failed: without usage it costs nothing. */
  readonly isFailed?: true;
  /** The provider refused a message of the client. */
  readonly refuses?: true;
  /** What the response used. */
  readonly usage?: Usage;
  /** What writing down the input used. */
  readonly transcription?: Usage;
  /** A transcription that is billed by time, which has no tokens. */
  readonly isBilledByTime?: true;
  /** The model of the session, as the provider names it. */
  readonly model?: string;
  /** Whether the log keeps the message: it says something that no other message says. */
  readonly kept: boolean;
}

export interface SessionDialect {
  readonly kind: "realtime" | "responses" | "other";
  /** Null for a message that is not of this dialect. */
  readClient(bytes: Buffer): ClientMessage | null;
  readProvider(bytes: Buffer): ProviderMessage;
  /** A response is a turn of the conversation: at most one is open, and any input opens it. */
  readonly hasTurns: boolean;
  /** Whether the model may answer with sound, which costs more than text. */
  readonly hasSound: boolean;
  /** The message that tells the client of an error; null if the dialect has none, and only the close frame says why. */
  readonly toError: ((error: ErrorFacts) => string) | null;
  /** False for messages of which nothing is known: no usage is read. */
  readonly isKnown: boolean;
}

export interface ErrorFacts {
  readonly code: number;
  readonly status: number;
  readonly message: string;
  /** The event of the client that was refused. */
  readonly eventId: string | null;
}

export function parseObject(bytes: Buffer): Fields | null {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}

/** Content and tools' parameters may have members of any name. */
const CONTENT: ReadonlySet<string> = new Set(["input", "parameters", "metadata", "instructions", "items"]);
/** Settings are not nested deeper. */
const MAX_DEPTH = 8;

/** The values of all members `model`, in any case, except in content. */
export function collectModels(value: unknown, names: string[] = [], depth = 0): string[] {
  if (depth > MAX_DEPTH) return names;
  if (Array.isArray(value)) {
    for (const item of value) collectModels(item, names, depth + 1);
  } else if (isFields(value)) {
    for (const [key, item] of Object.entries(value)) {
      const name = key.toLowerCase();
      if (name === "model" && typeof item === "string") names.push(item);
      else if (name === "models" || name === "fallbacks") collectTexts(item, names);
      // Content is a text or a list; `audio.input` is an object of settings.
      const isContent = CONTENT.has(name) && !(name === "input" && isFields(item));
      if (!isContent) collectModels(item, names, depth + 1);
    }
  }
  return names;
}

function collectTexts(value: unknown, names: string[]): void {
  if (!Array.isArray(value)) return;
  for (const item of value) if (typeof item === "string") names.push(item);
}
