import { Link } from "../routing/link.tsx";

export interface TabLink {
  readonly title: string;
  readonly to: string;
  readonly isCurrent: boolean;
}

/** Tabs that are links, because each one has its own URL. */
export function TabLinks({ label, tabs }: { readonly label: string; readonly tabs: readonly TabLink[] }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.to} to={tab.to} aria-current={tab.isCurrent ? "page" : undefined}>
          {tab.title}
        </Link>
      ))}
    </nav>
  );
}
