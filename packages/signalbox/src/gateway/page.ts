/** Pagination of the gateway's management lists: `page` from 1, `per_page` up to 100. */
import { z } from "zod";

export const pageQuery = z.object({
  page: z.coerce.number().int().min(1).default(1),
  per_page: z.coerce.number().int().min(1).max(100).default(20),
});

export interface PageInfo {
  readonly page: number;
  readonly per_page: number;
  readonly count: number;
  readonly total_count: number;
}

export function pageOf<T>(
  all: readonly T[],
  query: z.output<typeof pageQuery>,
): { items: T[]; resultInfo: PageInfo } {
  const start = (query.page - 1) * query.per_page;
  const items = all.slice(start, start + query.per_page);
  return {
    items,
    resultInfo: {
      page: query.page,
      per_page: query.per_page,
      count: items.length,
      total_count: all.length,
    },
  };
}
