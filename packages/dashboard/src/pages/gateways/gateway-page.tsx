import { type ReactNode, useMemo } from "react";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { TabLinks } from "../../components/tab-links.tsx";
import { read } from "../../http/api.ts";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import { NotFoundPage } from "../not-found-page.tsx";
import { AnalyticsTab } from "./analytics/analytics-tab.tsx";
import type { Gateway } from "./gateway.ts";
import { AuthenticationBadge } from "./gateways-page.tsx";
import { CallPage } from "./logs/call-page.tsx";
import { LogsTab } from "./logs/logs-tab.tsx";
import { LimitsTab } from "../limits/limits-tab.tsx";
import { KeysTab } from "../provider-keys/keys-tab.tsx";
import { RoutePage } from "../routes/route-page.tsx";
import { RoutesTab } from "../routes/routes-tab.tsx";
import { SettingsTab } from "./settings/settings-tab.tsx";

const TABS = [
  { name: "settings", title: "Settings" },
  { name: "limits", title: "Limits" },
  { name: "provider-keys", title: "Provider keys" },
  { name: "routes", title: "Routes" },
  { name: "logs", title: "Logs" },
  { name: "analytics", title: "Analytics" },
];

/** One gateway: its settings, limits, keys, routes, logs and analytics, and the pages of a single call or route. */
export function GatewayPage({ id, rest }: { readonly id: string; readonly rest: readonly string[] }) {
  const { api, page } = useAccountPaths();
  const path = api("ai-gateway", "gateways", id);
  const gateway = useResource(path, (signal) => read<Gateway>(path, signal));
  const [tab = "settings", below, ...more] = rest;
  const crumbs = useMemo(() => [{ title: "Gateways", to: page("gateways") }], [page]);
  if (more.length > 0) return <NotFoundPage />;
  if (tab === "logs" && below !== undefined) return <CallPage gatewayId={id} callId={below} />;
  if (tab === "routes" && below !== undefined)
    return <RoutePage key={below} gatewayId={id} routeId={below} />;
  const view = viewOf(tab, id, gateway);
  if (view === null || below !== undefined) return <NotFoundPage />;
  return (
    <>
      <PageHeader
        title={id}
        crumbs={crumbs}
        actions={gateway.value !== undefined && <AuthenticationBadge gateway={gateway.value} />}
      />
      <TabLinks
        label="Gateway"
        tabs={TABS.map(({ name, title }) => ({
          title,
          to: name === "settings" ? page("gateways", id) : page("gateways", id, name),
          isCurrent: tab === name,
        }))}
      />
      {view}
    </>
  );
}

function viewOf(tab: string, id: string, gateway: Resource<Gateway>): ReactNode {
  if (tab === "logs") return <LogsTab gatewayId={id} />;
  if (tab === "analytics") return <AnalyticsTab gatewayId={id} />;
  if (tab === "routes") return <RoutesTab gatewayId={id} />;
  const show = (view: (value: Gateway) => ReactNode) => <ResourceView of={gateway}>{view}</ResourceView>;
  if (tab === "limits") return show((value) => <LimitsTab gateway={value} onChange={gateway.reload} />);
  if (tab === "provider-keys") return show((value) => <KeysTab gateway={value} onChange={gateway.reload} />);
  if (tab === "settings") return show((value) => <SettingsTab gateway={value} onChange={gateway.reload} />);
  return null;
}
