import { TabLinks } from "../../components/tab-links.tsx";
import { useAccountPaths, useScope } from "../../session/session.ts";
import { isPageAllowed } from "../../shell/destinations.ts";

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
  const { session } = useScope();
  return (
    <TabLinks
      label="Gateways"
      tabs={TABS.filter((tab) => isPageAllowed(tab.page, session)).map((tab) => ({
        title: tab.title,
        to: page(tab.page),
        isCurrent: tab.page === current,
      }))}
    />
  );
}
