import { TabLinks } from "../../components/tab-links.tsx";
import { useAccountPaths } from "../../session/session.ts";

export function GatewaysTabs({ current }: { readonly current: "gateways" | "usage" }) {
  const { page } = useAccountPaths();
  return (
    <TabLinks
      label="Gateways"
      tabs={[
        { title: "Gateways", to: page("gateways"), isCurrent: current === "gateways" },
        { title: "Usage", to: page("usage"), isCurrent: current === "usage" },
      ]}
    />
  );
}
