/** Citations of the messages dialect. Only those with a URL have a counterpart elsewhere. */
import { listOf, recordOf, textOrNull } from "../json.ts";
import type { Citation } from "../neutral/part.ts";

export function decodeCitations(value: unknown): Citation[] {
  return listOf(value).flatMap((entry) => {
    const citation = decodeCitation(entry);
    return citation === null ? [] : [citation];
  });
}

export function decodeCitation(value: unknown): Citation | null {
  const entry = recordOf(value);
  const url = textOrNull(entry["url"]) ?? textOrNull(entry["source"]);
  if (url === null) return null;
  return {
    url,
    title: textOrNull(entry["title"]),
    quote: textOrNull(entry["cited_text"]),
    start: null,
    end: null,
  };
}

/** `text` is the block that the citation belongs to, from which a quote is taken if the source gave none. */
export function encodeCitation(citation: Citation, text: string): Record<string, unknown> {
  const { url, title, quote, start, end } = citation;
  return {
    type: "web_search_result_location",
    url,
    title,
    cited_text: quote ?? (start === null || end === null ? "" : text.slice(start, end)),
    encrypted_index: "",
  };
}
