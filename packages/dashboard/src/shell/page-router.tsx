/** Selects the page for a path. Each page is a separate chunk, loaded when it is first opened. */
import { lazy, type ReactNode } from "react";
import { NotFoundPage } from "../pages/not-found-page.tsx";

const OverviewPage = lazy(async () => ({
  default: (await import("../pages/overview/overview-page.tsx")).OverviewPage,
}));
const GatewaysPage = lazy(async () => ({
  default: (await import("../pages/gateways/gateways-page.tsx")).GatewaysPage,
}));
const GatewayPage = lazy(async () => ({
  default: (await import("../pages/gateways/gateway-page.tsx")).GatewayPage,
}));
const UsagePage = lazy(async () => ({
  default: (await import("../pages/gateways/usage-page.tsx")).UsagePage,
}));
const TagsPage = lazy(async () => ({ default: (await import("../pages/tags/tags-page.tsx")).TagsPage }));
const KeysPage = lazy(async () => ({ default: (await import("../pages/tags/keys-page.tsx")).KeysPage }));
const ChangesPage = lazy(async () => ({
  default: (await import("../pages/tags/changes-page.tsx")).ChangesPage,
}));
const ResourcePage = lazy(async () => ({
  default: (await import("../pages/tags/resource-page.tsx")).ResourcePage,
}));
const AgentsPage = lazy(async () => ({
  default: (await import("../pages/agents/agents-page.tsx")).AgentsPage,
}));
const InstancesPage = lazy(async () => ({
  default: (await import("../pages/agents/instances-page.tsx")).InstancesPage,
}));
const InstancePage = lazy(async () => ({
  default: (await import("../pages/agents/instance-page.tsx")).InstancePage,
}));
const ProblemsPage = lazy(async () => ({
  default: (await import("../pages/problems/problems-page.tsx")).ProblemsPage,
}));
const SourcesPage = lazy(async () => ({
  default: (await import("../pages/webhooks/sources-page.tsx")).SourcesPage,
}));
const SourcePage = lazy(async () => ({
  default: (await import("../pages/webhooks/source-page.tsx")).SourcePage,
}));
const DeliveriesPage = lazy(async () => ({
  default: (await import("../pages/webhooks/deliveries-page.tsx")).DeliveriesPage,
}));
const DeliveryPage = lazy(async () => ({
  default: (await import("../pages/webhooks/delivery-page.tsx")).DeliveryPage,
}));
const TokensPage = lazy(async () => ({
  default: (await import("../pages/tokens/tokens-page.tsx")).TokensPage,
}));
const TokenPage = lazy(async () => ({
  default: (await import("../pages/tokens/token-page.tsx")).TokenPage,
}));
const AccountLimitsPage = lazy(async () => ({
  default: (await import("../pages/limits/account-limits-page.tsx")).AccountLimitsPage,
}));
const ProviderKeysPage = lazy(async () => ({
  default: (await import("../pages/provider-keys/provider-keys-page.tsx")).ProviderKeysPage,
}));
const AlertsPage = lazy(async () => ({
  default: (await import("../pages/alerts/alerts-page.tsx")).AlertsPage,
}));
const PricesPage = lazy(async () => ({
  default: (await import("../pages/prices/prices-page.tsx")).PricesPage,
}));
const CustomProvidersPage = lazy(async () => ({
  default: (await import("../pages/custom-providers/custom-providers-page.tsx")).CustomProvidersPage,
}));
const AllLogsPage = lazy(async () => ({
  default: (await import("../pages/gateways/logs/all-logs-page.tsx")).AllLogsPage,
}));
const AuditPage = lazy(async () => ({
  default: (await import("../pages/audit/audit-page.tsx")).AuditPage,
}));

const ClusterPage = lazy(async () => ({
  default: (await import("../pages/cluster/cluster-page.tsx")).ClusterPage,
}));

/** Pages without parts below them. */
const ACCOUNT_PAGES: Readonly<Record<string, ReactNode>> = {
  logs: <AllLogsPage />,
  usage: <UsagePage />,
  limits: <AccountLimitsPage />,
  "provider-keys": <ProviderKeysPage />,
  prices: <PricesPage />,
  providers: <CustomProvidersPage />,
  cluster: <ClusterPage />,
  alerts: <AlertsPage />,
  problems: <ProblemsPage />,
};

export function PageRouter({ page }: { readonly page: readonly string[] }): ReactNode {
  const [area = "", ...rest] = page;
  if (area === "" && rest.length === 0) return <OverviewPage />;
  const [name, ...below] = rest;
  if (area === "gateways")
    return name === undefined ? <GatewaysPage /> : <GatewayPage key={name} id={name} rest={below} />;
  if (rest.length === 0 && Object.hasOwn(ACCOUNT_PAGES, area)) return ACCOUNT_PAGES[area];
  if (area === "audit" && rest.length === 0) return <AuditPage />;
  if (area === "agents") return agentsPage(rest);
  if (area === "webhooks") return webhooksPage(rest);
  if (area === "tags") return tagsPage(rest);
  if (area === "tokens" && below.length === 0)
    return name === undefined ? <TokensPage /> : <TokenPage key={name} id={name} />;
  return <NotFoundPage />;
}

function tagsPage([view, type, id, ...more]: readonly string[]): ReactNode {
  if (view === undefined) return <TagsPage />;
  if (view === "keys" && type === undefined) return <KeysPage />;
  if (view === "changes" && type === undefined) return <ChangesPage />;
  if (view === "resources" && type !== undefined && id !== undefined && more.length === 0)
    return <ResourcePage key={`${type}/${id}`} type={type} id={id} />;
  return <NotFoundPage />;
}

function webhooksPage([view, id, ...more]: readonly string[]): ReactNode {
  if (more.length > 0) return <NotFoundPage />;
  if (view === undefined) return <SourcesPage />;
  if (view === "sources" && id !== undefined) return <SourcePage key={id} name={id} />;
  if (view === "deliveries") return id === undefined ? <DeliveriesPage /> : <DeliveryPage key={id} id={id} />;
  return <NotFoundPage />;
}

function agentsPage([agent, name, tab = "state", ...more]: readonly string[]): ReactNode {
  if (more.length > 0) return <NotFoundPage />;
  if (agent === undefined) return <AgentsPage />;
  if (name === undefined) return <InstancesPage key={agent} agent={agent} />;
  return <InstancePage key={`${agent}/${name}`} agent={agent} name={name} tab={tab} />;
}
