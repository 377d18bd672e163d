import { useLayoutEffect, useRef } from "react";
import { Link } from "../routing/link.tsx";

export interface TabLink {
  readonly title: string;
  readonly to: string;
  readonly isCurrent: boolean;
}

/** Tabs that are links, because each one has its own URL. On narrow screens they scroll, and the current one is in view. */
export function TabLinks({ label, tabs }: { readonly label: string; readonly tabs: readonly TabLink[] }) {
  const list = useRef<HTMLElement>(null);
  const current = tabs.find(({ isCurrent }) => isCurrent)?.to;
  useLayoutEffect(() => {
    list.current
      ?.querySelector('[aria-current="page"]')
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <nav className="tabs" aria-label={label} ref={list}>
      {tabs.map((tab) => (
        <Link key={tab.to} to={tab.to} aria-current={tab.isCurrent ? "page" : undefined}>
          {tab.title}
        </Link>
      ))}
    </nav>
  );
}
