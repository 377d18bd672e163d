/** A search of the web as an output item. A page that the model has opened or searched is an item of the same type, without a query. */
import { listOf, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { SearchCall } from "../neutral/part.ts";

export function isSearch(item: Json): boolean {
  return item["type"] === "web_search_call" && (recordOf(item["action"])["type"] ?? "search") === "search";
}

export function decodeSearchItem(item: Json): SearchCall {
  const action = recordOf(item["action"]);
  const sources = listOf(action["sources"]).flatMap((value) => {
    const { url, title } = recordOf(value);
    return typeof url === "string" ? [{ url, title: textOrNull(title) }] : [];
  });
  const query = textOrNull(action["query"]) ?? textOf(listOf(action["queries"])[0]);
  return { id: textOrNull(item["id"]), query, sources };
}

export function encodeSearchItem(
  { query, sources }: SearchCall,
  id: string,
  status: "in_progress" | "completed",
): Record<string, unknown> {
  return {
    id,
    type: "web_search_call",
    status,
    action: { type: "search", query, sources: sources.map(({ url }) => ({ type: "url", url })) },
  };
}
