import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { TagList } from "./tag-list.tsx";
import { resourceKey, type TaggedResource } from "./tagged-resource.ts";

interface ResourceTableProps {
  readonly rows: readonly TaggedResource[];
  readonly selected: ReadonlySet<string>;
  /** Null: rows cannot be selected. */
  readonly onSelect: ((selected: ReadonlySet<string>) => void) | null;
}

export function ResourceTable({ rows, selected, onSelect }: ResourceTableProps) {
  const { page } = useAccountPaths();
  const toggle = (resource: TaggedResource) => {
    const next = new Set(selected);
    const key = resourceKey(resource);
    if (!next.delete(key)) next.add(key);
    onSelect?.(next);
  };
  const editable = rows.filter(({ zone_id }) => zone_id === undefined);
  const isAll = editable.every((resource) => selected.has(resourceKey(resource)));
  return (
    <div className="stack">
      {onSelect !== null && (
        <label className="check">
          <input
            type="checkbox"
            checked={isAll}
            onChange={() => onSelect(isAll ? new Set() : new Set(editable.map(resourceKey)))}
          />
          <span>Select all {editable.length}</span>
        </label>
      )}
      <Table
        label="Resources"
        rows={rows}
        keyOf={resourceKey}
        columns={[
          ...(onSelect === null
            ? []
            : [
                {
                  title: "Select",
                  // Bulk edits support account-level resources only, not resources of a zone.
                  cell: (resource: TaggedResource) =>
                    resource.zone_id === undefined && (
                      <input
                        type="checkbox"
                        aria-label={`Select ${resource.type} ${resource.id}`}
                        checked={selected.has(resourceKey(resource))}
                        onChange={() => toggle(resource)}
                      />
                    ),
                },
              ]),
          {
            title: "Resource",
            cell: (resource) => (
              <>
                {/* The resource page supports account-level resources only. */}
                {resource.zone_id === undefined ? (
                  <Link to={page("tags", "resources", resource.type, resource.id)}>{resource.name}</Link>
                ) : (
                  resource.name
                )}{" "}
                <span className="muted small nowrap">{resource.type}</span>
              </>
            ),
          },
          { title: "Tags", cell: (resource) => <TagList tags={resource.tags} /> },
          {
            title: "Last updated",
            isMinor: true,
            cell: (resource) => <Time at={resource.tags_updated_at ?? null} />,
          },
        ]}
      />
    </div>
  );
}
