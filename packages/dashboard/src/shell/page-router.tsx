/** Selects the page for a path. Each page is a separate chunk, loaded when it is first opened. */
import type { ReactNode } from "react";
import { lazyPart } from "../http/load-part.ts";
import { NotFoundPage } from "../pages/not-found-page.tsx";

const OverviewPage = lazyPart(async () => (await import("../pages/overview/overview-page.tsx")).OverviewPage);
const GatewaysPage = lazyPart(async () => (await import("../pages/gateways/gateways-page.tsx")).GatewaysPage);
const GatewayPage = lazyPart(async () => (await import("../pages/gateways/gateway-page.tsx")).GatewayPage);
const UsagePage = lazyPart(async () => (await import("../pages/gateways/usage-page.tsx")).UsagePage);
const TagsPage = lazyPart(async () => (await import("../pages/tags/tags-page.tsx")).TagsPage);
const KeysPage = lazyPart(async () => (await import("../pages/tags/keys-page.tsx")).KeysPage);
const ChangesPage = lazyPart(async () => (await import("../pages/tags/changes-page.tsx")).ChangesPage);
const JobsPage = lazyPart(async () => (await import("../pages/tags/jobs/jobs-page.tsx")).JobsPage);
const JobPage = lazyPart(async () => (await import("../pages/tags/jobs/job-page.tsx")).JobPage);
const ResourcePage = lazyPart(async () => (await import("../pages/tags/resource-page.tsx")).ResourcePage);
const AgentsPage = lazyPart(async () => (await import("../pages/agents/agents-page.tsx")).AgentsPage);
const InstancesPage = lazyPart(
  async () => (await import("../pages/agents/instances-page.tsx")).InstancesPage,
);
const InstancePage = lazyPart(async () => (await import("../pages/agents/instance-page.tsx")).InstancePage);
const ProblemsPage = lazyPart(async () => (await import("../pages/problems/problems-page.tsx")).ProblemsPage);
const SourcesPage = lazyPart(async () => (await import("../pages/webhooks/sources-page.tsx")).SourcesPage);
const SourcePage = lazyPart(async () => (await import("../pages/webhooks/source-page.tsx")).SourcePage);
const DeliveriesPage = lazyPart(
  async () => (await import("../pages/webhooks/deliveries-page.tsx")).DeliveriesPage,
);
const DeliveryPage = lazyPart(async () => (await import("../pages/webhooks/delivery-page.tsx")).DeliveryPage);
const EventsPage = lazyPart(
  async () => (await import("../pages/webhooks/routes/events-page.tsx")).EventsPage,
);
const EventPage = lazyPart(async () => (await import("../pages/webhooks/routes/event-page.tsx")).EventPage);
const TokensPage = lazyPart(async () => (await import("../pages/tokens/tokens-page.tsx")).TokensPage);
const TokenPage = lazyPart(async () => (await import("../pages/tokens/token-page.tsx")).TokenPage);
const AccountLimitsPage = lazyPart(
  async () => (await import("../pages/limits/account-limits-page.tsx")).AccountLimitsPage,
);
const ProviderKeysPage = lazyPart(
  async () => (await import("../pages/provider-keys/provider-keys-page.tsx")).ProviderKeysPage,
);
const GuardrailsPage = lazyPart(
  async () => (await import("../pages/guardrails/guardrails-page.tsx")).GuardrailsPage,
);
const AlertsPage = lazyPart(async () => (await import("../pages/alerts/alerts-page.tsx")).AlertsPage);
const PricesPage = lazyPart(async () => (await import("../pages/prices/prices-page.tsx")).PricesPage);
const CustomProvidersPage = lazyPart(
  async () => (await import("../pages/custom-providers/custom-providers-page.tsx")).CustomProvidersPage,
);
const AllLogsPage = lazyPart(
  async () => (await import("../pages/gateways/logs/all-logs-page.tsx")).AllLogsPage,
);
const UsersPage = lazyPart(async () => (await import("../pages/gateways/whom/whom-list-page.tsx")).UsersPage);
const SessionsPage = lazyPart(
  async () => (await import("../pages/gateways/whom/whom-list-page.tsx")).SessionsPage,
);
const UserPage = lazyPart(async () => (await import("../pages/gateways/whom/whom-page.tsx")).UserPage);
const SessionPage = lazyPart(async () => (await import("../pages/gateways/whom/whom-page.tsx")).SessionPage);
const AuditPage = lazyPart(async () => (await import("../pages/audit/audit-page.tsx")).AuditPage);

const ClusterPage = lazyPart(async () => (await import("../pages/cluster/cluster-page.tsx")).ClusterPage);

/** Pages without parts below them. */
const ACCOUNT_PAGES: Readonly<Record<string, ReactNode>> = {
  logs: <AllLogsPage />,
  usage: <UsagePage />,
  limits: <AccountLimitsPage />,
  "provider-keys": <ProviderKeysPage />,
  guardrails: <GuardrailsPage />,
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
  if (area === "users" && below.length === 0)
    return name === undefined ? <UsersPage /> : <UserPage key={name} name={name} />;
  if (area === "sessions" && below.length === 0)
    return name === undefined ? <SessionsPage /> : <SessionPage key={name} name={name} />;
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
  if (view === "jobs" && id === undefined)
    return type === undefined ? <JobsPage /> : <JobPage key={type} id={type} />;
  if (view === "resources" && type !== undefined && id !== undefined && more.length === 0)
    return <ResourcePage key={`${type}/${id}`} type={type} id={id} />;
  return <NotFoundPage />;
}

function webhooksPage([view, id, ...more]: readonly string[]): ReactNode {
  if (more.length > 0) return <NotFoundPage />;
  if (view === undefined) return <SourcesPage />;
  if (view === "sources" && id !== undefined) return <SourcePage key={id} name={id} />;
  if (view === "deliveries") return id === undefined ? <DeliveriesPage /> : <DeliveryPage key={id} id={id} />;
  if (view === "events") return id === undefined ? <EventsPage /> : <EventPage key={id} id={id} />;
  return <NotFoundPage />;
}

function agentsPage([agent, name, tab = "timeline", ...more]: readonly string[]): ReactNode {
  if (more.length > 0) return <NotFoundPage />;
  if (agent === undefined) return <AgentsPage />;
  if (name === undefined) return <InstancesPage key={agent} agent={agent} />;
  return <InstancePage key={`${agent}/${name}`} agent={agent} name={name} tab={tab} />;
}
