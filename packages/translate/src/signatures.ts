/**
 * Signatures of reasoning in a field of another dialect.
 *
 * A signature is worth something only to the provider that made it, and other providers reject it. So a field that
 * holds the signature of another dialect's provider names that dialect: `gemini::<signature>`. The client stores it and
 * sends it back, and the decoder recovers both. The dialect's own signatures have no prefix, so that conversations
 * begun without this package continue with it.
 */
import type { Dialect } from "./dialect.ts";
import type { Part, ReasoningPart } from "./neutral/part.ts";

const PREFIX = /^(chat|messages|responses|gemini)(-redacted)?:([^:]{0,200}):/;

export type Signature = Pick<ReasoningPart, "signature" | "origin" | "id" | "isRedacted">;

export const NO_SIGNATURE: Signature = { signature: null, origin: null, id: null, isRedacted: false };

/** The text for the signature field of dialect `home`; null without a signature. */
export function packSignature(reasoning: Signature, home: Dialect): string | null {
  const { signature, origin, id, isRedacted } = reasoning;
  if (signature === null || origin === null) return null;
  if (origin === home) return signature;
  return `${origin}${isRedacted ? "-redacted" : ""}:${id ?? ""}:${signature}`;
}

/** The signature in a field of dialect `home`. */
export function unpackSignature(text: string | null, home: Dialect): Signature {
  if (text === null || text === "") return NO_SIGNATURE;
  const match = PREFIX.exec(text);
  if (match === null) return { signature: text, origin: home, id: null, isRedacted: false };
  return {
    signature: text.slice(match[0].length),
    origin: match[1] as Dialect,
    id: match[3] === "" || match[3] === undefined ? null : match[3],
    isRedacted: match[2] !== undefined,
  };
}

/**
 * Parts with Gemini's signatures of calls and texts as reasoning of their own, for dialects that have no other place
 * for them: before the call, and after the text, as a stream has them.
 */
export function separateSignatures(parts: readonly Part[]): readonly Part[] {
  if (!parts.some((part) => "signature" in part && part.type !== "reasoning")) return parts;
  return parts.flatMap((part): readonly Part[] => {
    if (part.type === "tool_call" && part.signature !== undefined)
      return [geminiReasoning(part.signature), part];
    if (part.type === "text" && part.signature !== undefined) return [part, geminiReasoning(part.signature)];
    return [part];
  });
}

export function geminiReasoning(signature: string): ReasoningPart {
  return { type: "reasoning", text: "", signature, origin: "gemini", id: null, isRedacted: false };
}
