/**
 * The parts that a message consists of. A part that only one dialect knows has no place here: its decoder reports it
 * as lost. Base64 text is held as the string that the parser made; no encoder copies it except into a data: URI.
 */
import type { Dialect } from "../dialect.ts";

/** A prompt cache ends after the part that bears the mark. `long` asks for the longer of the provider's lifetimes. */
export type CacheMark = "default" | "long";

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly cache?: CacheMark | undefined;
  readonly citations?: readonly Citation[] | undefined;
  /** Gemini's signature of the reasoning that led to this text. */
  readonly signature?: string | undefined;
}

/** A source of the text, as far as more than one dialect can name it. */
export interface Citation {
  readonly url: string;
  readonly title: string | null;
  /** The quoted text of the source (messages). */
  readonly quote: string | null;
  /** Characters of the text that the source supports (chat, responses). */
  readonly start: number | null;
  readonly end: number | null;
}

/** A search of the web that the provider has made. What came of it is in the text and its citations. */
export interface SearchCall {
  readonly id: string | null;
  readonly query: string;
  /** Pages that were found; empty if the provider does not name them. */
  readonly sources: readonly { readonly url: string; readonly title: string | null }[];
}

export type MediaSource =
  | { readonly kind: "base64"; readonly mediaType: string; readonly data: string }
  | { readonly kind: "url"; readonly url: string; readonly mediaType: string | null }
  /** An id of the provider's file store. Only the provider that gave the id knows it. */
  | { readonly kind: "file"; readonly id: string };

export interface ImagePart {
  readonly type: "image";
  readonly source: MediaSource;
  readonly detail?: string | undefined;
  readonly cache?: CacheMark | undefined;
}

export interface FilePart {
  readonly type: "file";
  readonly source: MediaSource | { readonly kind: "text"; readonly text: string };
  readonly name: string | null;
  readonly cache?: CacheMark | undefined;
}

export interface AudioPart {
  readonly type: "audio";
  /** Such as `wav` or `mp3`. */
  readonly format: string;
  readonly data: string;
}

/**
 * Reasoning of the model. `signature` is opaque: only the provider of the dialect `origin` can verify it, so an encoder
 * of another dialect carries it along in a form that its decoder recognises, and no encoder sends it to a stranger.
 */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly signature: string | null;
  /** The dialect whose provider made the signature; null without a signature. */
  readonly origin: Dialect | null;
  /** The item's id (responses). */
  readonly id: string | null;
  /** The text is withheld and `signature` is all there is (messages: `redacted_thinking`). */
  readonly isRedacted: boolean;
}

export interface ToolCallPart {
  readonly type: "tool_call";
  readonly id: string;
  readonly name: string;
  /** JSON text; for a custom tool the free text. */
  readonly arguments: string;
  readonly isCustom: boolean;
  readonly namespace?: string | undefined;
  readonly cache?: CacheMark | undefined;
  /** Gemini's signature of the reasoning that led to this call. */
  readonly signature?: string | undefined;
}

export interface ToolResultPart {
  readonly type: "tool_result";
  readonly callId: string;
  readonly parts: readonly (TextPart | ImagePart | FilePart)[];
  readonly isError: boolean;
  readonly isCustom: boolean;
  readonly cache?: CacheMark | undefined;
}

export interface RefusalPart {
  readonly type: "refusal";
  readonly text: string;
}

export type Part =
  | TextPart
  | ImagePart
  | FilePart
  | AudioPart
  | ReasoningPart
  | ToolCallPart
  | ToolResultPart
  | RefusalPart;

export type PromptPart = TextPart | ImagePart | FilePart;
