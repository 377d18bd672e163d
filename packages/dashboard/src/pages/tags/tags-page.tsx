import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { usePageLocation, useQueryValue } from "../../routing/location.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { EditTagsDialog } from "./edit-tags-dialog.tsx";
import { NewResourceDialog } from "./new-resource-dialog.tsx";
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
  const [dialog, setDialog] = useState<"edit" | "new" | null>(null);
  const resources = useList<TaggedResource>(
    withQuery(api("tags", "resources"), { tag: filters, type, name }),
  );
  const selectedResources = (resources.value ?? []).filter((resource) => selected.has(resourceKey(resource)));
  const onTagsChanged = () => {
    setSelected(new Set());
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
                {selectedResources.length === 0 ? "Edit tags" : `Edit tags (${selectedResources.length})`}
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
      <div className="filters">
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
            <ResourceTable rows={rows} selected={selected} onSelect={canEdit ? setSelected : null} />
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
