import type { ProviderKey } from "@signalbox/client";
import { useMemo, useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { useAction } from "../../http/use-action.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useHasPermission } from "../../session/session.ts";
import { KeyDialog } from "./key-dialog.tsx";
import { KeysTable } from "./keys-table.tsx";

/** The health of keys changes with each call. */
const REFRESH_MS = 5000;

type Shown = { kind: "edit"; key: ProviderKey | null } | { kind: "remove"; key: ProviderKey } | null;

/** The provider keys of a gateway, or without one those of all gateways of the account. */
export function KeysView({ gatewayId }: { readonly gatewayId?: string }) {
  const account = useAccount();
  const canEdit = useHasPermission("gateway.edit");
  const api = useMemo(() => account.providerKeys(gatewayId), [account, gatewayId]);
  const keys = useResource(
    `provider keys ${account.id} ${gatewayId ?? ""}`,
    (signal) => account.providerKeys(gatewayId).list({ per_page: 100 }, { signal }).all(),
    { refreshMs: REFRESH_MS },
  );
  const [dialog, setDialog] = useState<Shown>(null);
  const close = () => setDialog(null);
  const toggle = useAction(async (key: ProviderKey) => {
    await api.update(key.id, { disabled: !key.disabled });
    keys.reload();
  });
  return (
    <section className="section" aria-labelledby="provider-keys-title">
      <div className="row spread">
        <h2 id="provider-keys-title">Provider keys</h2>
        {canEdit && (
          <Button kind="primary" onClick={() => setDialog({ kind: "edit", key: null })}>
            Add key
          </Button>
        )}
      </div>
      {toggle.error !== null && <ErrorNotice error={toggle.error} />}
      <ResourceView of={keys}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No provider keys here">
              <p>
                {gatewayId === undefined
                  ? "A key of the account serves all its gateways that have no key of their own for the provider."
                  : "Without a key of its own, the gateway uses the keys of the account."}{" "}
                Calls that bring a provider's key of their own need none.
              </p>
            </EmptyState>
          ) : (
            <KeysTable
              keys={rows}
              canEdit={canEdit}
              onEdit={(key) => setDialog({ kind: "edit", key })}
              onToggle={(key) => void toggle.run(key)}
              onRemove={(key) => setDialog({ kind: "remove", key })}
            />
          )
        }
      </ResourceView>
      {dialog?.kind === "edit" && (
        <KeyDialog keys={api} edited={dialog.key} onClose={close} onSaved={keys.reload} />
      )}
      {dialog?.kind === "remove" && (
        <ConfirmDialog
          title={`Remove the key of ${dialog.key.provider_slug}?`}
          verb="Remove"
          onConfirm={async () => {
            await api.delete(dialog.key.id);
            keys.reload();
          }}
          onClose={close}
        >
          <p>
            The key <code>{dialog.key.secret_preview}</code> is deleted here. It stays valid at the provider.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}
