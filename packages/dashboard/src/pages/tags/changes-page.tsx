/** The account's latest tag changes, newest first, and new ones as they happen. */
import { useEffect, useState } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { ApiError, ask, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import { ChangeTable } from "./change-table.tsx";
import type { TagChange } from "./tagged-resource.ts";
import { TagsTabs } from "./tags-tabs.tsx";

/** A page of the feed. */
const SHOWN = 100;

interface Feed {
  readonly changes: readonly TagChange[];
  /** Where the stream goes on. */
  readonly position: string;
}

export function ChangesPage() {
  const { api } = useAccountPaths();
  const path = api("tags", "changes");
  const feed = useResource(path, (signal) => readLatest(path, signal));
  const arrived = useStream(path, feed.value?.position ?? null);
  return (
    <>
      <PageHeader title="Tags">Every change of a tag in the account, as it happens.</PageHeader>
      <TagsTabs current="changes" />
      <ResourceView of={feed}>
        {({ changes }) => {
          const all = [...changes, ...arrived].toReversed().slice(0, 2 * SHOWN);
          return all.length === 0 ? (
            <EmptyState title="No changes yet">
              <p>Who changed which tag, and when, appears here at once.</p>
            </EmptyState>
          ) : (
            <ChangeTable changes={all} />
          );
        }}
      </ResourceView>
    </>
  );
}

/** The feed is read forwards; its end is found first. */
async function readLatest(path: string, signal: AbortSignal): Promise<Feed> {
  const end = await ask<TagChange[]>(withQuery(path, { after: "newest" }), { signal });
  const position = Number(end.info.cursor ?? "0");
  const start = await ask<TagChange[]>(withQuery(path, { after: String(Math.max(0, position - SHOWN)) }), {
    signal,
  }).catch((error: unknown) => {
    // The beginning may have been pruned; then everything that is kept is what there is.
    if (error instanceof ApiError && error.status < 500) return ask<TagChange[]>(path, { signal });
    throw error;
  });
  return { changes: start.result, position: start.info.cursor ?? String(position) };
}

function useStream(path: string, after: string | null): readonly TagChange[] {
  const [arrived, setArrived] = useState<readonly TagChange[]>([]);
  useEffect(() => {
    if (after === null) return undefined;
    setArrived([]);
    const source = new EventSource(withQuery(path, { after }));
    source.addEventListener("change", (event: MessageEvent<string>) => {
      setArrived((before) => [...before, JSON.parse(event.data) as TagChange].slice(-SHOWN));
    });
    return () => source.close();
  }, [path, after]);
  return arrived;
}
