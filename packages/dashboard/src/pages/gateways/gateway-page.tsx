import { type ReactNode, Suspense, useMemo } from "react";
import { PartLoading } from "../../components/loading.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { TabLinks } from "../../components/tab-links.tsx";
import { read } from "../../http/api.ts";
import { lazyPart } from "../../http/load-part.ts";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import { NotFoundPage } from "../not-found-page.tsx";
import type { Gateway } from "./gateway.ts";
import { AuthenticationBadge } from "./gateways-page.tsx";
import { LogsTab } from "./logs/logs-tab.tsx";

const AnalyticsTab = lazyPart(async () => (await import("./analytics/analytics-tab.tsx")).AnalyticsTab);
const CallPage = lazyPart(async () => (await import("./logs/call-page.tsx")).CallPage);
const PlaygroundTab = lazyPart(async () => (await import("../playground/playground-tab.tsx")).PlaygroundTab);
const LimitsTab = lazyPart(async () => (await import("../limits/limits-tab.tsx")).LimitsTab);
const KeysTab = lazyPart(async () => (await import("../provider-keys/keys-tab.tsx")).KeysTab);
const RoutePage = lazyPart(async () => (await import("../routes/route-page.tsx")).RoutePage);
const RoutesTab = lazyPart(async () => (await import("../routes/routes-tab.tsx")).RoutesTab);
const SettingsTab = lazyPart(async () => (await import("./settings/settings-tab.tsx")).SettingsTab);

/** The first one is the page of the gateway itself. */
const TABS = [
  { name: "logs", title: "Logs" },
  { name: "analytics", title: "Analytics" },
  { name: "playground", title: "Playground" },
  { name: "limits", title: "Limits" },
  { name: "provider-keys", title: "Provider keys" },
  { name: "routes", title: "Routes" },
  { name: "settings", title: "Settings" },
];

/** One gateway: its logs, analytics, playground, limits, keys, routes and settings, and the pages of a single call or route. */
export function GatewayPage({ id, rest }: { readonly id: string; readonly rest: readonly string[] }) {
  const { api, page } = useAccountPaths();
  const path = api("ai-gateway", "gateways", id);
  const gateway = useResource(path, (signal) => read<Gateway>(path, signal));
  const [tab = "logs", below, ...more] = rest;
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
          to: name === "logs" ? page("gateways", id) : page("gateways", id, name),
          isCurrent: tab === name,
        }))}
      />
      <Suspense fallback={<PartLoading />}>{view}</Suspense>
    </>
  );
}

function viewOf(tab: string, id: string, gateway: Resource<Gateway>): ReactNode {
  if (tab === "logs") return <LogsTab gatewayId={id} />;
  if (tab === "analytics") return <AnalyticsTab gatewayId={id} />;
  if (tab === "routes") return <RoutesTab gatewayId={id} />;
  const show = (view: (value: Gateway) => ReactNode) => <ResourceView of={gateway}>{view}</ResourceView>;
  if (tab === "playground") return show((value) => <PlaygroundTab gateway={value} />);
  if (tab === "limits") return show((value) => <LimitsTab gateway={value} onChange={gateway.reload} />);
  if (tab === "provider-keys") return show((value) => <KeysTab gateway={value} onChange={gateway.reload} />);
  if (tab === "settings") return show((value) => <SettingsTab gateway={value} onChange={gateway.reload} />);
  return null;
}
