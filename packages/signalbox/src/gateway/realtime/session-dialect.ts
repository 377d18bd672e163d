/** Which dialect a session speaks, by the path of the provider. */
import type { Usage } from "../../engines/relay/index.ts";
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

export function addUsage(one: Usage, other: Usage): Usage {
  return {
    tokensIn: one.tokensIn + other.tokensIn,
    tokensOut: one.tokensOut + other.tokensOut,
    tokensInCached: one.tokensInCached + other.tokensInCached,
    tokensInCacheWrite: one.tokensInCacheWrite + other.tokensInCacheWrite,
    tokensInCacheWrite1h: one.tokensInCacheWrite1h + other.tokensInCacheWrite1h,
    tokensOutReasoning: one.tokensOutReasoning + other.tokensOutReasoning,
    tokensInAudio: one.tokensInAudio + other.tokensInAudio,
    tokensInImage: one.tokensInImage + other.tokensInImage,
    tokensOutAudio: one.tokensOutAudio + other.tokensOutAudio,
    tokensOutImage: one.tokensOutImage + other.tokensOutImage,
    searches: one.searches + other.searches,
    tier: "",
    reportedCost: null,
  };
}
