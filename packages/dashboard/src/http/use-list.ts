/** A list with pages. `loadMore` appends a page; a refresh reads all loaded pages again. */
import { List } from "@signalbox/client";
import { useCallback, useEffect, useState } from "react";
import { transport } from "./api.ts";
import { type Resource, type ResourceOptions, useResource } from "./use-resource.ts";

export interface ListResource<T> extends Resource<readonly T[]> {
  readonly hasMore: boolean;
  readonly loadMore: () => void;
}

/** `path` includes the filters; null sends no request. */
export function useList<T>(path: string | null, options: ResourceOptions = {}): ListResource<T> {
  const [pages, setPages] = useState(1);
  useEffect(() => setPages(1), [path]);
  const resource = useResource(
    path === null ? null : `${path}#${pages}`,
    (signal) => readPages<T>(path ?? "", pages, signal),
    { ...options, identity: path },
  );
  const loadMore = useCallback(() => setPages((n) => n + 1), []);
  return {
    ...resource,
    value: resource.value?.rows,
    hasMore: resource.value?.hasMore ?? false,
    loadMore,
  };
}

async function readPages<T>(
  path: string,
  pages: number,
  signal: AbortSignal,
): Promise<{ rows: T[]; hasMore: boolean }> {
  const rows: T[] = [];
  let hasMore = false;
  let count = 0;
  for await (const page of new List<T>(transport, path, {}, { signal }).pages()) {
    rows.push(...page.items);
    hasMore = page.next !== null;
    if (++count >= pages) break;
  }
  return { rows, hasMore };
}
