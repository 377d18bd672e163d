/** Which dialect a session speaks, by the path of the provider. */
import { GEMINI_LIVE } from "./gemini-messages.ts";
import type { ClientMessage, ProviderMessage, SessionDialect } from "./message.ts";
import { OPENAI_REALTIME, OPENAI_RESPONSES } from "./openai-messages.ts";

const NOTHING: ProviderMessage = { kept: false };
const PASSED: ClientMessage = { startsResponse: false, models: [], mediaBytes: 0, eventId: null };

/** A provider whose messages are not known: they are passed on. */
const OPAQUE: SessionDialect = {
  kind: "other",
  readClient: () => PASSED,
  readProvider: () => NOTHING,
  hasTurns: false,
  hasSound: false,
  toError: null,
  isKnown: false,
};

const BY_PATH: readonly (readonly [RegExp, SessionDialect])[] = [
  [/(?:^|\/)realtime$/i, OPENAI_REALTIME],
  [/(?:^|\/)responses$/i, OPENAI_RESPONSES],
  [/(?:^|[./])BidiGenerateContent(?:Constrained)?$/i, GEMINI_LIVE],
];

export function dialectOf(path: string): SessionDialect {
  return BY_PATH.find(([pattern]) => pattern.test(path))?.[1] ?? OPAQUE;
}
