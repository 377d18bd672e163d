/** The management writes of the account: who changed what, from where, with which outcome. */
import type { AuditEntry } from "@signalbox/client";
import { useState } from "react";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import { AuditEntryDialog } from "./audit-entry-dialog.tsx";

export const OUTCOME_TONES: Readonly<Record<AuditEntry["action"]["outcome"], Tone>> = {
  success: "good",
  refused: "warn",
  failed: "bad",
  unknown: "bad",
};

export function actorName({ actor }: AuditEntry): string {
  return actor.type === "token" ? actor.name : actor.type;
}

export function AuditPage() {
  const { api } = useAccountPaths();
  const [outcome, setOutcome] = useQueryValue("outcome");
  const [action, setAction] = useQueryValue("action");
  const [type, setType] = useQueryValue("resource_type");
  const [id, setId] = useQueryValue("resource_id");
  const [actor, setActor] = useQueryValue("actor");
  const [shown, setShown] = useState<AuditEntry | null>(null);
  const filters = { outcome, action, resource_type: type, resource_id: id, actor };
  const entries = useList<AuditEntry>(withQuery(api("audit_logs"), filters));
  const isFiltered = Object.values(filters).some((value) => value !== "");
  const text = (label: string, value: string, set: (value: string) => void, placeholder: string) => (
    <Field label={label}>
      <input
        type="search"
        value={value}
        placeholder={placeholder}
        onChange={({ target }) => set(target.value.trim())}
      />
    </Field>
  );
  return (
    <>
      <PageHeader
        title="Audit log"
        actions={
          <>
            {(["csv", "ndjson"] as const).map((format) => (
              <a
                key={format}
                className="button"
                href={withQuery(api("audit_logs", "export"), { ...filters, format })}
                download={`audit-log.${format}`}
              >
                Export {format.toUpperCase()}
              </a>
            ))}
          </>
        }
      >
        Every change of settings in this account, refused attempts included. Entries cannot be changed.
      </PageHeader>
      <div className="filters">
        <Field label="Outcome">
          <select value={outcome} onChange={({ target }) => setOutcome(target.value)}>
            <option value="">Any</option>
            <option value="success">Success</option>
            <option value="refused">Refused</option>
            <option value="failed">Failed</option>
            <option value="unknown">Unknown</option>
          </select>
        </Field>
        {text("Action", action, setAction, "update")}
        {text("Resource type", type, setType, "gateways")}
        {text("Resource ID", id, setId, "default")}
        {text("Token ID", actor, setActor, "or root")}
      </div>
      <ResourceView of={entries}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={isFiltered ? "No matching entries" : "No entries yet"}>
              <p>
                {isFiltered
                  ? "Change or clear the filters. Values must match exactly."
                  : "Changes of gateways, tokens, keys, limits and tags appear here."}
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Audit log"
              rows={rows}
              keyOf={(entry) => entry.id}
              columns={[
                { title: "Time", cell: (entry) => <Time at={entry.when} /> },
                { title: "Actor", cell: actorName },
                { title: "Address", cell: (entry) => entry.actor.ip ?? "–", isMinor: true },
                {
                  title: "Change",
                  cell: (entry) => (
                    <button type="button" className="link-button" onClick={() => setShown(entry)}>
                      {entry.action.type} {entry.resource.type}
                      {entry.resource.id !== "" && ` / ${resourceName(entry)}`}
                    </button>
                  ),
                },
                {
                  title: "Outcome",
                  cell: ({ action: { outcome: own, status } }) => (
                    <Badge tone={OUTCOME_TONES[own]}>{status === null ? own : `${own} ${status}`}</Badge>
                  ),
                },
              ]}
            />
          )
        }
      </ResourceView>
      {entries.hasMore && <Button onClick={entries.loadMore}>Show more</Button>}
      {shown !== null && <AuditEntryDialog entry={shown} onClose={() => setShown(null)} />}
    </>
  );
}

/** The name of what was changed, if its state before or after has one; else its id. The dialog shows the id, too. */
function resourceName({ resource, before, after }: AuditEntry): string {
  for (const state of [after, before]) {
    const name = typeof state === "object" && state !== null && "name" in state ? state.name : null;
    if (typeof name === "string" && name !== "") return name;
  }
  return resource.id;
}
