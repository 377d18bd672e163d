import type { DatabaseSetting } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { Table } from "../../components/table.tsx";

/** The settings of PostgreSQL on which the durability of writes depends. */
export function SettingsPanel({ settings }: { readonly settings: readonly DatabaseSetting[] }) {
  return (
    <section className="panel" aria-labelledby="settings-title">
      <h2 id="settings-title">Settings of PostgreSQL</h2>
      <Table
        label="Settings of PostgreSQL"
        rows={settings}
        keyOf={({ name }) => name}
        columns={[
          { title: "Setting", cell: ({ name }) => <code className="nowrap">{name}</code> },
          { title: "Value", cell: ({ value }) => <code>{value === "" ? "''" : value}</code> },
          {
            title: "Durability",
            cell: ({ is_safe, note }) => {
              if (!is_safe) return <Badge tone="bad">unsafe</Badge>;
              return note === null ? <Badge tone="good">safe</Badge> : <Badge tone="warn">note</Badge>;
            },
          },
          { title: "Meaning", cell: ({ note }) => <div className="cell-prose">{note ?? "–"}</div> },
        ]}
      />
    </section>
  );
}
