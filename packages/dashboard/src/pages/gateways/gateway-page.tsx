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
import { SettingsTab } from "./settings/settings-tab.tsx";

/** One gateway: its settings, logs and analytics, and the page of a single call. */
export function GatewayPage({ id, rest }: { readonly id: string; readonly rest: readonly string[] }) {
  const { api, page } = useAccountPaths();
  const path = api("ai-gateway", "gateways", id);
  const gateway = useResource(path, (signal) => read<Gateway>(path, signal));
  const [tab = "settings", callId] = rest;
  const crumbs = useMemo(() => [{ title: "Gateways", to: page("gateways") }], [page]);
  if (tab === "logs" && callId !== undefined) return <CallPage gatewayId={id} callId={callId} />;
  const view = viewOf(tab, id, gateway);
  if (view === null || rest.length > 1) return <NotFoundPage />;
  return (
    <>
      <PageHeader
        title={id}
        crumbs={crumbs}
        actions={gateway.value !== undefined && <AuthenticationBadge gateway={gateway.value} />}
      />
      <TabLinks
        label="Gateway"
        tabs={[
          { title: "Settings", to: page("gateways", id), isCurrent: tab === "settings" },
          { title: "Logs", to: page("gateways", id, "logs"), isCurrent: tab === "logs" },
          { title: "Analytics", to: page("gateways", id, "analytics"), isCurrent: tab === "analytics" },
        ]}
      />
      {view}
    </>
  );
}

function viewOf(tab: string, id: string, gateway: Resource<Gateway>): ReactNode {
  if (tab === "logs") return <LogsTab gatewayId={id} />;
  if (tab === "analytics") return <AnalyticsTab gatewayId={id} />;
  if (tab !== "settings") return null;
  return (
    <ResourceView of={gateway}>
      {(value) => <SettingsTab gateway={value} onChange={gateway.reload} />}
    </ResourceView>
  );
}
