import { TabLinks } from "../../components/tab-links.tsx";
import { useAccountPaths } from "../../session/session.ts";

const TABS = [
  { page: "gateways", title: "Gateways" },
  { page: "logs", title: "Logs" },
  { page: "usage", title: "Usage" },
  { page: "limits", title: "Limits" },
  { page: "provider-keys", title: "Provider keys" },
  { page: "prices", title: "Prices" },
  { page: "providers", title: "Custom providers" },
] as const;

export function GatewaysTabs({ current }: { readonly current: (typeof TABS)[number]["page"] }) {
  const { page } = useAccountPaths();
  return (
    <TabLinks
      label="Gateways"
      tabs={TABS.map((tab) => ({ title: tab.title, to: page(tab.page), isCurrent: tab.page === current }))}
    />
  );
}
