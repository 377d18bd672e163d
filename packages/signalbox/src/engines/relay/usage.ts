/**
 * What a call used, by every count that some provider bills. `read-usage.ts` reads it from responses.
 */

export interface Usage {
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** Part of `tokensIn` that was read from the provider's prompt cache. */
  readonly tokensInCached: number;
  /** Part of `tokensIn` that was written to the provider's prompt cache. */
  readonly tokensInCacheWrite: number;
  /** Part of `tokensInCacheWrite` that the provider keeps for an hour, at a higher price. */
  readonly tokensInCacheWrite1h: number;
  /** Part of `tokensOut` that was spent on reasoning. */
  readonly tokensOutReasoning: number;
  /** Parts of `tokensIn` and `tokensOut` that are sound or pictures, without what was read from the prompt cache. */
  readonly tokensInAudio: number;
  readonly tokensInImage: number;
  readonly tokensOutAudio: number;
  readonly tokensOutImage: number;
  /** Web searches, and searches in stored files, that the provider made and bills by the piece. */
  readonly searches: number;
  readonly fileSearches: number;
  /** Sound that was read, and pages of documents, for models that are billed by these. */
  readonly seconds: number;
  readonly pages: number;
  /** The request asked for more than the text of the pages, which is dearer. */
  readonly isAnnotated: boolean;
  /** Characters that were spoken, pictures that were made, and searches of rankings, for models that are billed by these. */
  readonly characters: number;
  readonly images: number;
  /** Quality and size of each picture, as the request names them: `hd 1024x1792`. */
  readonly imageForm: string;
  readonly rankings: number;
  /** What other tools of the provider did that is billed beside the tokens; null for nothing. */
  readonly tools: ToolUse | null;
  /** What changes the price of a token, as `readTier` of `read-usage.ts` names it; empty for the usual tier. */
  readonly tier: string;
  /** The rounds of an answer that are billed one by one, possibly at another model; null for one round. The counts above are their sum. */
  readonly rounds: readonly UsageRound[] | null;
  /** US dollars, as the provider states them; null when it states none. */
  readonly reportedCost: number | null;
}

export interface UsageRound {
  /** Null for the model of the call. */
  readonly model: string | null;
  readonly usage: Usage;
}

/** Tools that the provider runs and bills: no usage counts them, or a member of its own. */
export interface ToolUse {
  /** Containers for code that were started, by the gigabyte of their memory. */
  readonly sessions: number;
  /** Answers that maps are the ground of. */
  readonly maps: number;
  /** What other models used for the answer, such as the one that makes pictures. */
  readonly rounds: readonly UsageRound[];
  /** A tool ran of which the answer does not say what is billed. */
  readonly isUnpriced: boolean;
}

export const NO_USAGE: Usage = {
  tokensIn: 0,
  tokensOut: 0,
  tokensInCached: 0,
  tokensInCacheWrite: 0,
  tokensInCacheWrite1h: 0,
  tokensOutReasoning: 0,
  tokensInAudio: 0,
  tokensInImage: 0,
  tokensOutAudio: 0,
  tokensOutImage: 0,
  searches: 0,
  fileSearches: 0,
  seconds: 0,
  pages: 0,
  isAnnotated: false,
  characters: 0,
  images: 0,
  imageForm: "",
  rankings: 0,
  tools: null,
  tier: "",
  rounds: null,
  reportedCost: null,
};

/** The sum of the counts. A tier and a stated price belong to one answer. */
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
    fileSearches: one.fileSearches + other.fileSearches,
    seconds: one.seconds + other.seconds,
    pages: one.pages + other.pages,
    isAnnotated: one.isAnnotated || other.isAnnotated,
    characters: one.characters + other.characters,
    images: one.images + other.images,
    imageForm: one.imageForm || other.imageForm,
    rankings: one.rankings + other.rankings,
    tools: addTools(one.tools, other.tools),
    tier: "",
    rounds: null,
    reportedCost: null,
  };
}

export function addTools(one: ToolUse | null, other: ToolUse | null): ToolUse | null {
  if (one === null || other === null) return one ?? other;
  return {
    sessions: one.sessions + other.sessions,
    maps: one.maps + other.maps,
    rounds: [...one.rounds, ...other.rounds],
    isUnpriced: one.isUnpriced || other.isUnpriced,
  };
}

/** Usage of a stream that states it in parts: Anthropic states the input at the start, and the output, sometimes alone, at the end. */
export function mergeUsage(first: Usage | null, last: Usage | null): Usage {
  if (first === null || last === null) return last ?? first ?? NO_USAGE;
  const isInputKnown = last.tokensIn > 0;
  const input = isInputKnown ? last : first;
  return {
    tokensIn: input.tokensIn,
    tokensInCached: input.tokensInCached,
    tokensInCacheWrite: input.tokensInCacheWrite,
    tokensInCacheWrite1h: input.tokensInCacheWrite1h || first.tokensInCacheWrite1h,
    tokensInAudio: input.tokensInAudio,
    tokensInImage: input.tokensInImage,
    tokensOut: Math.max(last.tokensOut, first.tokensOut),
    tokensOutReasoning: Math.max(last.tokensOutReasoning, first.tokensOutReasoning),
    tokensOutAudio: Math.max(last.tokensOutAudio, first.tokensOutAudio),
    tokensOutImage: Math.max(last.tokensOutImage, first.tokensOutImage),
    searches: Math.max(last.searches, first.searches),
    fileSearches: Math.max(last.fileSearches, first.fileSearches),
    seconds: Math.max(last.seconds, first.seconds),
    pages: Math.max(last.pages, first.pages),
    isAnnotated: last.isAnnotated || first.isAnnotated,
    characters: Math.max(last.characters, first.characters),
    images: Math.max(last.images, first.images),
    imageForm: last.imageForm || first.imageForm,
    rankings: Math.max(last.rankings, first.rankings),
    tools: last.tools ?? first.tools,
    tier: last.tier || first.tier,
    rounds: last.rounds ?? first.rounds,
    reportedCost: last.reportedCost ?? first.reportedCost,
  };
}
