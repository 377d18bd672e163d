import type { Alert } from "@signalbox/client";
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { spanText } from "../../format/time.ts";
import { request } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { AlertDialog } from "./alert-dialog.tsx";
import { METRIC_TITLES, showAmount } from "./alert-metrics.ts";
import { NoticesDialog } from "./notices-dialog.tsx";

type Shown = { kind: "edit"; alert: Alert | null } | { kind: "delete" | "notices"; alert: Alert } | null;

const REFRESH_MS = 10_000;

/** Rules on errors, latency, spend, deliveries and dead letters, and whether they fire. */
export function AlertsPage() {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("gateway.edit");
  const path = api("alerts");
  const alerts = useList<Alert>(path, { refreshMs: REFRESH_MS });
  const [dialog, setDialog] = useState<Shown>(null);
  const close = () => setDialog(null);
  return (
    <>
      <PageHeader
        title="Alerts"
        actions={
          canEdit && (
            <Button kind="primary" onClick={() => setDialog({ kind: "edit", alert: null })}>
              Create alert
            </Button>
          )
        }
      >
        Rules that send a signed webhook or a Slack message when something goes wrong.
      </PageHeader>
      <ResourceView of={alerts}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No alerts">
              <p>Create one on error rate, latency, spend, failed deliveries or dead letters.</p>
            </EmptyState>
          ) : (
            <Table
              label="Alerts"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: "Alert",
                  cell: (alert) => (
                    <>
                      {alert.name}
                      <div className="muted small">{placeOf(alert)}</div>
                    </>
                  ),
                },
                { title: "Status", cell: (alert) => <Status alert={alert} /> },
                {
                  title: "Rule",
                  cell: ({ metric, threshold, window }) =>
                    `${METRIC_TITLES[metric]} ≥ ${showAmount(metric, threshold)}${window === undefined ? "" : ` in ${spanText(window)}`}`,
                },
                {
                  title: "Now",
                  cell: ({ metric, value }) => (value === null ? "–" : showAmount(metric, value)),
                },
                { title: "Last notice", cell: (alert) => <Time at={alert.notified_at} /> },
                {
                  title: "Actions",
                  isAction: true,
                  cell: (alert) => (
                    <span className="row nowrap-row">
                      <Button size="small" onClick={() => setDialog({ kind: "notices", alert })}>
                        Notices<span className="visually-hidden"> of {alert.name}</span>
                      </Button>
                      {canEdit && (
                        <>
                          <Button size="small" onClick={() => setDialog({ kind: "edit", alert })}>
                            Edit<span className="visually-hidden"> {alert.name}</span>
                          </Button>
                          <Button size="small" onClick={() => setDialog({ kind: "delete", alert })}>
                            Delete<span className="visually-hidden"> {alert.name}</span>
                          </Button>
                        </>
                      )}
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </ResourceView>
      {dialog?.kind === "edit" && (
        <AlertDialog path={path} edited={dialog.alert} onClose={close} onSaved={alerts.reload} />
      )}
      {dialog?.kind === "notices" && (
        <NoticesDialog
          path={api("alerts", dialog.alert.id)}
          name={dialog.alert.name}
          canTest={canEdit}
          onClose={close}
        />
      )}
      {dialog?.kind === "delete" && (
        <ConfirmDialog
          title={`Delete ${dialog.alert.name}?`}
          verb="Delete"
          onConfirm={async () => {
            await request(api("alerts", dialog.alert.id), { method: "DELETE" });
            alerts.reload();
          }}
          onClose={close}
        >
          <p>The rule and its notices are removed. Notices that were not delivered are not sent any more.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function Status({ alert }: { readonly alert: Alert }) {
  if (!alert.enabled) return <Badge>off</Badge>;
  if (alert.status === "ok") return <Badge tone="good">ok</Badge>;
  return (
    <>
      <Badge tone="bad">firing</Badge> <Time at={alert.since} />
    </>
  );
}

function placeOf({ gateway_id, provider, source }: Alert): string {
  const parts = [gateway_id, provider, source].filter((part) => part !== null);
  return parts.length === 0 ? "whole account" : parts.join(", ");
}
