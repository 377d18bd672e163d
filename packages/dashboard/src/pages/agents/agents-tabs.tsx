import { TabLinks } from "../../components/tab-links.tsx";
import { useAccountPaths } from "../../session/session.ts";

export function AgentsTabs({ current }: { readonly current: "agents" | "problems" }) {
  const { page } = useAccountPaths();
  return (
    <TabLinks
      label="Agents"
      tabs={[
        { title: "Agents", to: page("agents"), isCurrent: current === "agents" },
        { title: "Problems", to: page("problems"), isCurrent: current === "problems" },
      ]}
    />
  );
}
