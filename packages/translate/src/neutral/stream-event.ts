/**
 * What a streamed response tells, between two dialects. Decoders emit these in the order of the upstream; encoders
 * open and close whatever blocks their dialect needs.
 */
import type { Dialect } from "../dialect.ts";
import type { Citation, SearchCall } from "./part.ts";
import type { NeutralError } from "./neutral-error.ts";
import type { StopReason } from "./response.ts";
import type { NeutralUsage } from "./usage.ts";

export type StreamEvent =
  | {
      readonly type: "start";
      readonly id: string | null;
      readonly model: string | null;
      readonly created: number | null;
      readonly usage: NeutralUsage | null;
    }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "text_signature"; readonly signature: string }
  | { readonly type: "citation"; readonly citation: Citation }
  | { readonly type: "search"; readonly search: SearchCall }
  | { readonly type: "refusal"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  /** Ends the current reasoning, or stands for reasoning without a text. */
  | {
      readonly type: "reasoning_signature";
      readonly signature: string | null;
      readonly origin: Dialect | null;
      readonly id: string | null;
      readonly isRedacted: boolean;
    }
  /** The block of text or reasoning is over; the next delta belongs to a new one. */
  | { readonly type: "break" }
  | {
      readonly type: "tool_start";
      /** Identifies the call among those of the stream. */
      readonly key: number;
      readonly id: string;
      readonly name: string;
      readonly isCustom: boolean;
      readonly namespace: string | null;
      /** Gemini's signature of the reasoning that led to the call. */
      readonly signature: string | null;
    }
  | { readonly type: "tool_delta"; readonly key: number; readonly text: string }
  | { readonly type: "tool_end"; readonly key: number }
  | { readonly type: "usage"; readonly usage: NeutralUsage }
  | {
      readonly type: "finish";
      readonly reason: StopReason;
      readonly stopSequence: string | null;
    }
  /** The upstream's terminal event. */
  | { readonly type: "end" }
  | { readonly type: "error"; readonly error: NeutralError };

/** Turns the payloads of the upstream's events into neutral ones. */
export interface StreamDecoder {
  /** `event` is the event's name, empty if it has none. */
  decode(event: string, data: string, emit: (event: StreamEvent) => void): void;
  /** The upstream ended without a terminal event. True if everything had come nevertheless. */
  finish(emit: (event: StreamEvent) => void): boolean;
}

/** Turns neutral events into the text of the client's stream. */
export interface StreamEncoder {
  /** What the client may have before the upstream's first byte. */
  begin(): string;
  encode(event: StreamEvent): string;
  /** Characters that are kept for later events; undefined when none are. */
  readonly heldLength?: number;
}
