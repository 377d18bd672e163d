/** Searches of the web in the blocks of a message: one with the query, one with what was found. */
import { listOf, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { SearchCall } from "../neutral/part.ts";
import type { NewId } from "../response-codec.ts";
import { WEB_SEARCH } from "../web-search.ts";

type Block = Record<string, unknown>;

export function decodeSearches(blocks: readonly Json[]): SearchCall[] {
  return blocks.filter(isResult).map((result) => {
    const id = textOf(result["tool_use_id"]);
    const call = blocks.find((block) => block["type"] === "server_tool_use" && block["id"] === id);
    return decodeSearch(id, textOf(recordOf(call?.["input"])["query"]), result);
  });
}

export function isResult(block: Json): boolean {
  return block["type"] === "web_search_tool_result";
}

/** A search that failed has an error in place of the list. */
export function decodeSearch(id: string, query: string, result: Json): SearchCall {
  const sources = listOf(result["content"]).flatMap((value) => {
    const { url, title } = recordOf(value);
    return typeof url === "string" ? [{ url, title: textOrNull(title) }] : [];
  });
  return { id, query, sources };
}

/** The provider encrypts what it has read of a page; another provider has nothing to put there. */
export function encodeSearch({ query, sources }: SearchCall, newId: NewId): [call: Block, result: Block] {
  const id = newId("srvtoolu_");
  return [
    { type: "server_tool_use", id, name: WEB_SEARCH, input: { query } },
    {
      type: "web_search_tool_result",
      tool_use_id: id,
      content: sources.map(({ url, title }) => ({
        type: "web_search_result",
        url,
        title: title ?? "",
        encrypted_content: "",
        page_age: null,
      })),
    },
  ];
}

/** For the usage of a message. */
export function encodeSearchCount(searches: number): Block {
  return searches === 0 ? {} : { server_tool_use: { web_search_requests: searches } };
}
