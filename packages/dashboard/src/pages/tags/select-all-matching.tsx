/** Selects every resource that matches the filters, not only those on the page. */
import { List } from "@signalbox/client";
import { useCallback, useEffect, useRef, useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { count } from "../../format/number.ts";
import { request, transport, withQuery } from "../../http/api.ts";
import { type Action, useAction } from "../../http/use-action.ts";
import { useResource } from "../../http/use-resource.ts";
import type { TaggedResource } from "./tagged-resource.ts";

/** An edit sends each resource with the version that was read; more would be hundreds of requests. */
const MAX_SELECTED = 20_000;

export interface AllMatching {
  /** The resources of an earlier `load`; null if not all are selected. */
  readonly resources: readonly TaggedResource[] | null;
  readonly load: Action<[]>;
  readonly clear: () => void;
}

/** `path` includes the filters: other filters clear the selection. */
export function useAllMatching(path: string): AllMatching {
  const [resources, setResources] = useState<readonly TaggedResource[] | null>(null);
  const newestPath = useRef(path);
  newestPath.current = path;
  const clear = useCallback(() => setResources(null), []);
  useEffect(() => clear, [path, clear]);
  const load = useAction(async () => {
    const found: TaggedResource[] = [];
    for await (const page of new List<TaggedResource>(transport, path, {}, {}).pages()) {
      found.push(...page.items.filter(({ zone_id }) => zone_id === undefined));
      if (found.length > MAX_SELECTED)
        throw new Error(
          `More than ${count(MAX_SELECTED)} resources match. Edit them in the background, or add a filter.`,
        );
    }
    if (newestPath.current === path) setResources(found);
  });
  return { resources, load, clear };
}

interface SelectAllMatchingProps {
  readonly path: string;
  /** Resources on the page, all of them selected. */
  readonly shown: number;
  readonly matching: AllMatching;
  readonly onClear: () => void;
  /** Starts a job that edits all that match, however many. */
  readonly onEditAll: () => void;
}

export function SelectAllMatching({ path, shown, matching, onClear, onEditAll }: SelectAllMatchingProps) {
  const totalPath = withQuery(path, { total: "exact" });
  const total = useResource(
    totalPath,
    async (signal) => (await request(totalPath, { signal })).info.total_count,
  );
  const { resources, load } = matching;
  return (
    <div className="notice notice-info" role="status">
      <div className="row">
        {resources === null ? (
          <>
            <span>The {count(shown)} resources on this page are selected.</span>
            <Button size="small" isBusy={load.isBusy} onClick={() => void load.run()}>
              Select all {total.value === undefined ? "" : `${count(total.value)} `}that match
            </Button>
            <Button size="small" onClick={onEditAll}>
              Edit all in the background
            </Button>
          </>
        ) : (
          <>
            <span>All {count(resources.length)} resources that match are selected.</span>
            <Button size="small" onClick={onClear}>
              Clear selection
            </Button>
          </>
        )}
      </div>
      {load.error !== null && <ErrorNotice error={load.error} />}
    </div>
  );
}
