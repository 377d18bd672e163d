/**
 * A list of the management interface. `for await` iterates over all items and requests each page when the previous one is consumed.
 * Lists with cursors and lists with page numbers have the same interface.
 */
import type { Query } from "./path.ts";
import type { RequestOptions, ResultInfo, Transport } from "./transport.ts";

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly info: ResultInfo;
  /** The position of the next page; null for the last page. */
  readonly next: Query | null;
}

export class List<Item> implements AsyncIterable<Item> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #query: Query;
  readonly #options: RequestOptions;

  constructor(transport: Transport, path: string, query: Query, options: RequestOptions) {
    this.#transport = transport;
    this.#path = path;
    this.#query = query;
    this.#options = options;
  }

  /** Reads one page: the first, or the one at the `next` of another page. */
  async page(position: Query = {}): Promise<Page<Item>> {
    const query = { ...this.#query, ...position };
    const { result, info } = await this.#transport.request<Item[]>("GET", this.#path, {
      query,
      ...this.#options,
    });
    return { items: result, info, next: nextPosition(info, result.length) };
  }

  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    for (let position: Query | null = {}; position !== null;) {
      const page: Page<Item> = await this.page(position);
      yield page;
      position = page.next;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
  }

  /** Reads all items, at most `max`. */
  async all(max = Infinity): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of this) {
      if (items.length >= max) break;
      items.push(item);
    }
    return items;
  }
}

function nextPosition(info: ResultInfo, count: number): Query | null {
  if (info.has_more === false) return null;
  if (typeof info.cursor === "string" && info.cursor !== "") return { cursor: info.cursor };
  const { page, per_page: perPage, total_count: total } = info;
  if (page === undefined || perPage === undefined || total === undefined) return null;
  // An empty page ends the list even below the total: items may be deleted between two pages.
  return count > 0 && page * perPage < total ? { page: page + 1 } : null;
}
