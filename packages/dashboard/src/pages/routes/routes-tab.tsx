import { useMemo, useState } from "react";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccount, useAccountPaths, useHasPermission } from "../../session/session.ts";
import { Circuits } from "./circuits.tsx";
import { CreateRouteDialog } from "./create-route-dialog.tsx";

/** The dynamic routes and the circuits of one gateway. */
export function RoutesTab({ gatewayId }: { readonly gatewayId: string }) {
  const account = useAccount();
  const { page } = useAccountPaths();
  const canEdit = useHasPermission("gateway.edit");
  const api = useMemo(() => account.routes(gatewayId), [account, gatewayId]);
  const [isCreating, setCreating] = useState(false);
  const routes = useResource(`routes ${account.id} ${gatewayId}`, (signal) =>
    api.list({ per_page: 100 }, { signal }).all(),
  );
  return (
    <div className="stack">
      <section className="section" aria-labelledby="routes-title">
        <div className="row spread">
          <h2 id="routes-title">Dynamic routes</h2>
          {canEdit && (
            <Button kind="primary" onClick={() => setCreating(true)}>
              Create route
            </Button>
          )}
        </div>
        <ResourceView of={routes}>
          {(rows) =>
            rows.length === 0 ? (
              <EmptyState title="No routes yet">
                <p>
                  A route decides which model answers a call: by conditions, shares and limits, with
                  fallbacks. Clients call <code>dynamic/name</code> instead of a model.
                </p>
              </EmptyState>
            ) : (
              <Table
                label="Routes"
                rows={rows}
                keyOf={({ id }) => id}
                columns={[
                  {
                    title: "Route",
                    cell: ({ id, name }) => (
                      <Link to={page("gateways", gatewayId, "routes", id)}>{name}</Link>
                    ),
                  },
                  { title: "Called as", cell: ({ name }) => <code>dynamic/{name}</code> },
                  { title: "Elements", align: "end", cell: ({ elements }) => elements.length },
                  {
                    title: "Deployed",
                    isMinor: true,
                    cell: ({ deployment }) => <Time at={deployment.created_at} />,
                  },
                ]}
              />
            )
          }
        </ResourceView>
      </section>
      <Circuits api={api} gatewayKey={`${account.id} ${gatewayId}`} canEdit={canEdit} />
      {isCreating && <CreateRouteDialog api={api} gatewayId={gatewayId} onClose={() => setCreating(false)} />}
    </div>
  );
}
