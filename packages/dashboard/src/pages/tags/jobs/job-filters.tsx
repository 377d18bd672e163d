import type { TagJob } from "@signalbox/client";
import { filtersOf } from "./job-words.ts";

/** Which resources a job visits. */
export function JobFilters({ query }: { readonly query: TagJob["query"] }) {
  const filters = filtersOf(query);
  if (filters.length === 0) return <>All tagged resources</>;
  return (
    <ul className="tag-list">
      {filters.map((filter) => (
        <li key={filter} className="tag">
          <span className="tag-value">{filter}</span>
        </li>
      ))}
    </ul>
  );
}
