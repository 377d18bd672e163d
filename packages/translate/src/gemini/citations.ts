/** Sources that Gemini names for an answer: of grounding (search results), and of quotations. */
import { listOf, numberOrNull, recordOf, textOrNull, type Json } from "../json.ts";
import type { Citation } from "../neutral/part.ts";

export function decodeGeminiCitations(candidate: Json): Citation[] {
  const grounding = recordOf(candidate["groundingMetadata"]);
  const chunks = listOf(grounding["groundingChunks"]).map((chunk) => recordOf(recordOf(chunk)["web"]));
  const grounded = listOf(grounding["groundingSupports"]).flatMap((value) => {
    const support = recordOf(value);
    const segment = recordOf(support["segment"]);
    return listOf(support["groundingChunkIndices"]).flatMap((index) => {
      const web = chunks[Number(index)];
      const url = textOrNull(web?.["uri"]);
      if (url === null) return [];
      return [
        {
          url,
          title: textOrNull(web?.["title"]),
          quote: textOrNull(segment["text"]),
          // Segments count bytes, not characters, so their place is not repeated.
          start: null,
          end: null,
        },
      ];
    });
  });
  const quoted = listOf(recordOf(candidate["citationMetadata"])["citations"]).flatMap((value) => {
    const citation = recordOf(value);
    const url = textOrNull(citation["uri"]);
    if (url === null) return [];
    return [
      {
        url,
        title: textOrNull(citation["title"]),
        quote: null,
        start: numberOrNull(citation["startIndex"]),
        end: numberOrNull(citation["endIndex"]),
      },
    ];
  });
  return [...grounded, ...quoted];
}

export function encodeGeminiCitations(citations: readonly Citation[]): Record<string, unknown> {
  if (citations.length === 0) return {};
  return {
    citationMetadata: {
      citations: citations.map(({ url, title, start, end }) => ({
        uri: url,
        ...(title === null ? {} : { title }),
        ...(start === null ? {} : { startIndex: start }),
        ...(end === null ? {} : { endIndex: end }),
      })),
    },
  };
}
