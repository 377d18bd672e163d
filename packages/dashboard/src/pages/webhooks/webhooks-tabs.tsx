import { TabLinks } from "../../components/tab-links.tsx";
import { useAccountPaths } from "../../session/session.ts";

export function WebhooksTabs({ current }: { readonly current: "sources" | "deliveries" | "events" }) {
  const { page } = useAccountPaths();
  return (
    <TabLinks
      label="Webhooks"
      tabs={[
        { title: "Sources", to: page("webhooks"), isCurrent: current === "sources" },
        { title: "Deliveries", to: page("webhooks", "deliveries"), isCurrent: current === "deliveries" },
        { title: "Events", to: page("webhooks", "events"), isCurrent: current === "events" },
      ]}
    />
  );
}
