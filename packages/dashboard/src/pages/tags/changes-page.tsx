/** The latest tag changes in the account, newest first, and new changes as they occur. */
import { useEffect, useState } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { ApiError, request, withQuery } from "../../http/api.ts";
import { openEventStream } from "../../http/event-stream.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import { ChangeTable } from "./change-table.tsx";
import type { TagChange } from "./tagged-resource.ts";
import { TagsTabs } from "./tags-tabs.tsx";

/** Number of changes in one page of the feed. */
const PAGE_SIZE = 100;
const MAX_SHOWN = 2 * PAGE_SIZE;

interface Feed {
  readonly changes: readonly TagChange[];
  /** Position of the last change; the stream starts after it. */
  readonly position: string;
}

export function ChangesPage() {
  const { api } = useAccountPaths();
  const path = api("tags", "changes");
  const feed = useResource(path, (signal) => readLatest(path, signal));
  const received = useStream(path, feed.value?.position ?? null);
  return (
    <>
      <PageHeader title="Tags">Tag changes in this account, updated live.</PageHeader>
      <TagsTabs current="changes" />
      <ResourceView of={feed}>
        {({ changes }) => {
          const all = [...changes, ...received].toReversed().slice(0, MAX_SHOWN);
          return all.length === 0 ? (
            <EmptyState title="No changes yet">
              <p>When a tag is added, changed or removed, the change appears here with its actor.</p>
            </EmptyState>
          ) : (
            <ChangeTable changes={all} />
          );
        }}
      </ResourceView>
    </>
  );
}

/** Reads the last page. The feed can be read only forwards, so the position of its end is read first. */
async function readLatest(path: string, signal: AbortSignal): Promise<Feed> {
  const end = await request<TagChange[]>(withQuery(path, { after: "newest" }), { signal });
  const position = Number(end.info.cursor ?? "0");
  const start = await request<TagChange[]>(
    withQuery(path, { after: String(Math.max(0, position - PAGE_SIZE)) }),
    {
      signal,
    },
  ).catch((error: unknown) => {
    // The start position may have been pruned. Then all stored changes are read.
    if (error instanceof ApiError && error.status < 500) return request<TagChange[]>(path, { signal });
    throw error;
  });
  return { changes: start.result, position: start.info.cursor ?? String(position) };
}

function useStream(path: string, after: string | null): readonly TagChange[] {
  const [received, setReceived] = useState<readonly TagChange[]>([]);
  useEffect(() => {
    if (after === null) return undefined;
    setReceived([]);
    let position = after;
    return openEventStream(
      () => withQuery(path, { after: position }),
      (source) =>
        source.addEventListener("change", (event: MessageEvent<string>) => {
          position = event.lastEventId;
          // As many as are shown: with fewer, the list would have a gap between them and the page that was read first.
          setReceived((before) => [...before, JSON.parse(event.data) as TagChange].slice(-MAX_SHOWN));
        }),
    );
  }, [path, after]);
  return received;
}
