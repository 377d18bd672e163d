import { TabLinks } from "../../components/tab-links.tsx";
import { useAccountPaths } from "../../session/session.ts";

const TABS = [
  { name: "", title: "Resources" },
  { name: "keys", title: "Keys and values" },
  { name: "changes", title: "Changes" },
  { name: "jobs", title: "Jobs" },
] as const;

export function TagsTabs({ current }: { readonly current: (typeof TABS)[number]["name"] }) {
  const { page } = useAccountPaths();
  return (
    <TabLinks
      label="Tags"
      tabs={TABS.map(({ name, title }) => ({
        title,
        to: name === "" ? page("tags") : page("tags", name),
        isCurrent: name === current,
      }))}
    />
  );
}
