import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { count } from "../../format/number.ts";
import { withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { usePageLocation, useQueryValue } from "../../routing/location.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { EditTagsDialog } from "./edit-tags-dialog.tsx";
import { NewJobDialog } from "./jobs/new-job-dialog.tsx";
import { NewResourceDialog } from "./new-resource-dialog.tsx";
import { SelectAllMatching, useAllMatching } from "./select-all-matching.tsx";
import { ResourceTable } from "./resource-table.tsx";
import { TagFilterField } from "./tag-filter-field.tsx";
import { resourceKey, type TaggedResource } from "./tagged-resource.ts";
import { TagsTabs } from "./tags-tabs.tsx";
import { TypeSelect } from "./type-select.tsx";

export function TagsPage() {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("tags.edit");
  const [filterText, setFilterText] = useQueryValue("filters");
  const filters = parseFilters(filterText);
  const [type, setType] = useQueryValue("type");
  const [name, setName] = useQueryValue("name");
  const { query } = usePageLocation();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [dialog, setDialog] = useState<"edit" | "edit all" | "new" | null>(null);
  const path = withQuery(api("tags", "resources"), { tag: filters, type, name });
  const resources = useList<TaggedResource>(path);
  const shown = resources.value ?? [];
  const editable = shown.filter(({ zone_id }) => zone_id === undefined);
  const isAllShown = editable.length > 0 && editable.every((resource) => selected.has(resourceKey(resource)));
  const matching = useAllMatching(path);
  const isAllMatching = matching.resources !== null;
  const selectedResources =
    matching.resources ?? shown.filter((resource) => selected.has(resourceKey(resource)));
  const select = (next: ReadonlySet<string>) => {
    matching.clear();
    setSelected(next);
  };
  const onTagsChanged = () => {
    select(new Set());
    resources.reload();
  };
  return (
    <>
      <PageHeader
        title="Tags"
        actions={
          canEdit && (
            <>
              <Button disabled={selectedResources.length === 0} onClick={() => setDialog("edit")}>
                {selectedResources.length === 0
                  ? "Edit tags"
                  : `Edit tags (${count(selectedResources.length)})`}
              </Button>
              <Button kind="primary" onClick={() => setDialog("new")}>
                Tag a resource
              </Button>
            </>
          )
        }
      >
        Resources with tags. Multiple filters are combined with AND; comma-separated values with OR.
      </PageHeader>
      <TagsTabs current="" />
      <div className="filters filters-top">
        <TagFilterField
          filters={filters}
          onChange={(next) => setFilterText(next.length === 0 ? "" : JSON.stringify(next))}
        />
        <TypeSelect value={type} onChange={setType} isOptional />
        <Field label="Name contains">
          <input type="search" value={name} onChange={({ target }) => setName(target.value)} />
        </Field>
      </div>
      <ResourceView of={resources}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={query.size === 0 ? "No tagged resources yet" : "No matching resources"}>
              <p>
                {query.size === 0
                  ? "Tag a gateway, a token or any other resource to find it by tag here and in the API."
                  : "Change or remove a filter. The tags in use are listed under Keys and values."}
              </p>
            </EmptyState>
          ) : (
            <>
              {canEdit && isAllShown && resources.hasMore && (
                <SelectAllMatching
                  path={path}
                  shown={editable.length}
                  matching={matching}
                  onClear={() => select(new Set())}
                  onEditAll={() => setDialog("edit all")}
                />
              )}
              <ResourceTable
                rows={rows}
                selected={isAllMatching ? new Set(editable.map(resourceKey)) : selected}
                onSelect={canEdit ? select : null}
              />
            </>
          )
        }
      </ResourceView>
      {resources.hasMore && <Button onClick={resources.loadMore}>Show more</Button>}
      {dialog === "edit" && (
        <EditTagsDialog
          resources={selectedResources}
          onClose={() => setDialog(null)}
          onDone={onTagsChanged}
        />
      )}
      {dialog === "edit all" && (
        <NewJobDialog
          query={{
            ...(filters.length === 0 ? {} : { tag: filters }),
            ...(type === "" ? {} : { type: [type] }),
            ...(name === "" ? {} : { name }),
          }}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === "new" && <NewResourceDialog onClose={() => setDialog(null)} />}
    </>
  );
}

function parseFilters(text: string): readonly string[] {
  try {
    const value: unknown = text === "" ? [] : JSON.parse(text);
    return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}
