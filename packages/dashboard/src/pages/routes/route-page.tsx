import type { DynamicRoute, RouteVersion } from "@signalbox/client";
import { useMemo, useState } from "react";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths, useHasPermission } from "../../session/session.ts";
import { RouteActions } from "./route-actions.tsx";
import { RouteWorkbench } from "./route-workbench.tsx";
import { VersionTable } from "./version-table.tsx";

interface Loaded {
  readonly route: DynamicRoute;
  readonly versions: readonly RouteVersion[];
}

/** One dynamic route: its graph, a trial, and its versions. */
export function RoutePage({ gatewayId, routeId }: { readonly gatewayId: string; readonly routeId: string }) {
  const account = useAccount();
  const { page } = useAccountPaths();
  const canEdit = useHasPermission("gateway.edit");
  const api = useMemo(() => account.routes(gatewayId), [account, gatewayId]);
  const [opened, setOpened] = useState<string | null>(null);
  const loaded = useResource<Loaded>(`route ${account.id} ${gatewayId} ${routeId}`, async (signal) => {
    const [route, versions] = await Promise.all([
      api.get(routeId, { signal }),
      api.versions(routeId, { signal }),
    ]);
    return { route, versions };
  });
  const crumbs = useMemo(
    () => [
      { title: "Gateways", to: page("gateways") },
      { title: gatewayId, to: page("gateways", gatewayId) },
      { title: "Routes", to: page("gateways", gatewayId, "routes") },
    ],
    [page, gatewayId],
  );
  const route = loaded.value?.route;
  return (
    <>
      <PageHeader
        title={route?.name ?? "Route"}
        crumbs={crumbs}
        actions={
          route !== undefined && canEdit && <RouteActions api={api} route={route} onChange={loaded.reload} />
        }
      >
        {route === undefined ? undefined : `Clients call it as the model dynamic/${route.name}.`}
      </PageHeader>
      <ResourceView of={loaded}>
        {({ route: value, versions }) => {
          const shown =
            versions.find(({ version_id: id }) => id === opened) ??
            versions.find(({ active }) => active === "true") ??
            value.version;
          return (
            <div className="stack">
              <RouteWorkbench
                key={shown.version_id}
                api={api}
                routeId={routeId}
                version={shown}
                canEdit={canEdit}
                onSaved={(id) => {
                  setOpened(id);
                  loaded.reload();
                }}
              />
              <VersionTable
                api={api}
                routeId={routeId}
                versions={versions}
                shownId={shown.version_id}
                canEdit={canEdit}
                onOpen={setOpened}
                onDeployed={loaded.reload}
              />
            </div>
          );
        }}
      </ResourceView>
    </>
  );
}
