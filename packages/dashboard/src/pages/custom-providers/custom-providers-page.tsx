import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { request, withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { ProviderHealth } from "./provider-health.tsx";
import { type CustomProvider, ProviderDialog } from "./provider-dialog.tsx";

type Shown =
  | { kind: "edit"; provider: CustomProvider | null }
  | { kind: "delete"; provider: CustomProvider }
  | null;

/** How all providers do, and the account's own, which are reached as `custom-<slug>`. */
export function CustomProvidersPage() {
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("gateway.edit");
  const path = api("ai-gateway", "custom-providers");
  const providers = useList<CustomProvider>(withQuery(path, { per_page: 50 }));
  const [dialog, setDialog] = useState<Shown>(null);
  const close = () => setDialog(null);
  return (
    <>
      <PageHeader
        title="Providers"
        actions={
          canEdit && (
            <Button kind="primary" onClick={() => setDialog({ kind: "edit", provider: null })}>
              Add provider
            </Button>
          )
        }
      >
        Where calls go: how the providers do, and servers of your own, such as a model server in your network.
      </PageHeader>
      <ProviderHealth />
      <section className="section" aria-labelledby="custom-title">
        <h2 id="custom-title">Custom providers</h2>
        <ResourceView of={providers}>
          {(rows) =>
            rows.length === 0 ? (
              <EmptyState title="No custom providers">
                <p>
                  Add one to call it as <code>custom-name</code>, with the limits, logs and routes of a
                  gateway.
                </p>
              </EmptyState>
            ) : (
              <Table
                label="Custom providers"
                rows={rows}
                keyOf={({ id }) => id}
                columns={[
                  {
                    title: "Provider",
                    cell: ({ slug, name, enable }) => (
                      <>
                        <code>custom-{slug}</code> {!enable && <Badge tone="warn">off</Badge>}
                        <div className="muted small">{name}</div>
                      </>
                    ),
                  },
                  { title: "Address", cell: (provider) => <code>{provider.base_url}</code> },
                  {
                    title: "Actions",
                    isAction: true,
                    cell: (provider) =>
                      canEdit && (
                        <span className="row nowrap-row">
                          <Button size="small" onClick={() => setDialog({ kind: "edit", provider })}>
                            Edit<span className="visually-hidden"> {provider.slug}</span>
                          </Button>
                          <Button size="small" onClick={() => setDialog({ kind: "delete", provider })}>
                            Delete<span className="visually-hidden"> {provider.slug}</span>
                          </Button>
                        </span>
                      ),
                  },
                ]}
              />
            )
          }
        </ResourceView>
        {providers.hasMore && <Button onClick={providers.loadMore}>Show more</Button>}
      </section>
      {dialog?.kind === "edit" && (
        <ProviderDialog path={path} edited={dialog.provider} onClose={close} onSaved={providers.reload} />
      )}
      {dialog?.kind === "delete" && (
        <ConfirmDialog
          title={`Delete custom-${dialog.provider.slug}?`}
          verb="Delete"
          onConfirm={async () => {
            await request(api("ai-gateway", "custom-providers", dialog.provider.id), { method: "DELETE" });
            providers.reload();
          }}
          onClose={close}
        >
          <p>Calls to this provider fail immediately. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
