/** Searches of the web in the grounding of an answer. Gemini does not say which query has found which page. */
import { listOf, recordOf, textOrNull, type Json } from "../json.ts";
import type { SearchCall } from "../neutral/part.ts";

export function decodeGeminiSearches(candidate: Json): SearchCall[] {
  const grounding = recordOf(candidate["groundingMetadata"]);
  const sources = listOf(grounding["groundingChunks"]).flatMap((chunk) => {
    const { uri, title } = recordOf(recordOf(chunk)["web"]);
    return typeof uri === "string" ? [{ url: uri, title: textOrNull(title) }] : [];
  });
  return listOf(grounding["webSearchQueries"]).flatMap((query, i) =>
    typeof query === "string" ? [{ id: null, query, sources: i === 0 ? sources : [] }] : [],
  );
}

export function encodeGeminiSearches(searches: readonly SearchCall[]): Record<string, unknown> {
  if (searches.length === 0) return {};
  return {
    groundingMetadata: {
      webSearchQueries: searches.map(({ query }) => query),
      groundingChunks: searches
        .flatMap(({ sources }) => sources)
        .map(({ url, title }) => ({ web: { uri: url, title: title ?? url } })),
    },
  };
}
