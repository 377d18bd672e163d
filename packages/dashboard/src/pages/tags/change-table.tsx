import { Badge } from "../../components/badge.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { TagDifference } from "./tag-list.tsx";
import type { TagChange } from "./tagged-resource.ts";

interface ChangeTableProps {
  /** In display order. */
  readonly changes: readonly TagChange[];
  readonly isOneResource?: boolean;
}

const ACTIONS: Readonly<Record<TagChange["action"], string>> = {
  set: "set",
  patch: "updated",
  delete: "deleted",
  resource_deleted: "resource deleted",
};

export function ChangeTable({ changes, isOneResource = false }: ChangeTableProps) {
  const { page } = useAccountPaths();
  return (
    <Table
      label="Changes"
      rows={changes}
      keyOf={(change) => change.position}
      columns={[
        { title: "Time", cell: (change) => <Time at={change.changed_at} /> },
        ...(isOneResource
          ? []
          : [
              {
                title: "Resource",
                cell: (change: TagChange) => (
                  <>
                    <Link to={page("tags", "resources", change.type, change.id)}>{change.name}</Link>{" "}
                    <span className="muted small">{change.type}</span>
                  </>
                ),
              },
            ]),
        { title: "Action", cell: (change) => <Badge>{ACTIONS[change.action]}</Badge> },
        {
          title: "Tags",
          cell: (change) => <TagDifference before={change.before ?? {}} after={change.after ?? {}} />,
        },
        { title: "Actor", isMinor: true, cell: (change) => <code>{change.actor}</code> },
      ]}
    />
  );
}
