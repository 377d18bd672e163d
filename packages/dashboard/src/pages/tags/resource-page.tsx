import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { ApiError, read, withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { ChangeTable } from "./change-table.tsx";
import { EditTagsDialog } from "./edit-tags-dialog.tsx";
import { TagList } from "./tag-list.tsx";
import type { TagChange, TaggedResource } from "./tagged-resource.ts";

/** Error code for a resource that was never tagged. */
const NEVER_TAGGED = 1004;

export function ResourcePage({ type, id }: { readonly type: string; readonly id: string }) {
  const { api, page } = useAccountPaths();
  const canEdit = useHasPermission("tags.edit");
  const [isEditing, setEditing] = useState(false);
  // A list filtered by ID instead of a read of one resource, which returns an error if the resource was never tagged.
  const path = withQuery(api("tags", "resources"), { type, id });
  const resource = useResource(path, async (signal) => {
    const found = await read<TaggedResource[]>(path, signal);
    return found.find(({ zone_id }) => zone_id === undefined) ?? untagged(type, id);
  });
  const history = useList<TagChange>(
    withQuery(api("tags", "history"), { resource_type: type, resource_id: id }),
  );
  const isNeverTagged = history.error instanceof ApiError && history.error.code === NEVER_TAGGED;
  return (
    <>
      <PageHeader
        title={resource.value?.name ?? id}
        crumbs={[{ title: "Tags", to: page("tags") }]}
        actions={
          canEdit && (
            <Button kind="primary" disabled={resource.value === undefined} onClick={() => setEditing(true)}>
              Edit tags
            </Button>
          )
        }
      >
        <Badge>{type}</Badge> <code>{id}</code>
      </PageHeader>
      <ResourceView of={resource}>
        {(value) => (
          <section className="panel" aria-labelledby="tags-title">
            <h2 id="tags-title">Tags</h2>
            <TagList tags={value.tags} />
          </section>
        )}
      </ResourceView>
      <section className="section" aria-labelledby="history-title">
        <h2 id="history-title">History</h2>
        {isNeverTagged ? (
          <EmptyState title="No changes yet">
            <p>Changes to the tags of this resource are listed here with their actor.</p>
          </EmptyState>
        ) : (
          <ResourceView of={history}>
            {(changes) =>
              changes.length === 0 ? (
                <EmptyState title="No stored changes">
                  <p>The changes to the tags of this resource have been pruned.</p>
                </EmptyState>
              ) : (
                <ChangeTable changes={changes} isOneResource />
              )
            }
          </ResourceView>
        )}
        {history.hasMore && (
          <div>
            <Button onClick={history.loadMore}>Show more</Button>
          </div>
        )}
      </section>
      {isEditing && resource.value !== undefined && (
        <EditTagsDialog
          resources={[resource.value]}
          onClose={() => setEditing(false)}
          onDone={() => {
            resource.reload();
            history.reload();
          }}
        />
      )}
    </>
  );
}

function untagged(type: string, id: string): TaggedResource {
  return { type, id, name: id, etag: "", tags: {} };
}
