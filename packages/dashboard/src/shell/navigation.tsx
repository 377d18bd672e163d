import type { ReactNode } from "react";
import { Link } from "../routing/link.tsx";
import { useAccountPaths, useScope } from "../session/session.ts";
import { isPageAllowed } from "./destinations.ts";

interface Entry {
  readonly page: string;
  readonly title: string;
  readonly icon: ReactNode;
  /** Other pages for which the entry is shown as current. */
  readonly also?: readonly string[];
}

interface Group {
  /** The areas of one page need no title. */
  readonly title: string | null;
  readonly entries: readonly Entry[];
}

const GROUPS: readonly Group[] = [
  {
    title: null,
    entries: [{ page: "", title: "Overview", icon: <path d="M3 10.5 10 4l7 6.5M5 9v7h10V9" /> }],
  },
  {
    title: "Gateway",
    entries: [
      { page: "logs", title: "Logs", icon: <path d="M4 5h12M4 10h12M4 15h7" /> },
      { page: "usage", title: "Usage", icon: <path d="M4 16V9M8 16V4M12 16v-5M16 16V7" /> },
      {
        page: "users",
        title: "Users",
        icon: <path d="M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6M4 17c0-3 2.500-4.500 6-4.500s6 1.500 6 4.500" />,
      },
      { page: "sessions", title: "Sessions", icon: <path d="M3 4h10v7H7l-4 3zM15 8h2v8l-3-2H9" /> },
      {
        page: "gateways",
        title: "Gateways",
        icon: <path d="M3 17V8a7 7 0 0 1 14 0v9M7 17V8a3 3 0 0 1 6 0v9" />,
      },
      {
        page: "guardrails",
        title: "Guardrails",
        icon: (
          <path d="M10 3 4.500 5v5c0 3.500 2.500 6 5.500 7 3-1 5.500-3.500 5.500-7V5zM7.500 10l2 2 3.500-3.500" />
        ),
      },
      {
        page: "provider-keys",
        title: "Keys",
        icon: <path d="M12 4a4 4 0 1 1-3 6.7L4 15.7V17h3v-2h2v-2l1.5-1.5M13 7h.01" />,
      },
      {
        page: "providers",
        title: "Providers",
        icon: <path d="M4 4h12v5H4zM4 11h12v5H4zM7 6.500h.01M7 13.500h.01" />,
      },
      { page: "limits", title: "Limits", icon: <path d="M3.500 14a7 7 0 1 1 13 0M10 13l3.500-4.500" /> },
      {
        page: "prices",
        title: "Prices",
        icon: <path d="M10 3v14M13.500 6.500C13 5 7 4.500 7 7.500s6.500 2 6.500 5-6 2.500-7 .5" />,
      },
    ],
  },
  {
    title: null,
    entries: [
      {
        page: "agents",
        title: "Agents",
        also: ["problems"],
        icon: <path d="M5 8h10v8H5zM10 8V4M8 4h4M8 12h.01M12 12h.01" />,
      },
      { page: "webhooks", title: "Webhooks", icon: <path d="M4 10h9M10 6l4 4-4 4M17 4v12" /> },
      { page: "tags", title: "Tags", icon: <path d="M3 4h6l8 8-6 6-8-8zM6.5 7.5h.01" /> },
    ],
  },
  {
    title: "Admin",
    entries: [
      {
        page: "alerts",
        title: "Alerts",
        icon: <path d="M5 14V9a5 5 0 0 1 10 0v5l1.500 2h-13zM8.500 18h3" />,
      },
      {
        page: "tokens",
        title: "Tokens",
        icon: <path d="M4 6h12v8H4zM7 10h.01M10 10h.01M13 10h.01" />,
      },
      { page: "audit", title: "Audit log", icon: <path d="M5 3h7l3 3v11H5zM8 9h4M8 12h4M8 15h2" /> },
      {
        page: "cluster",
        title: "Cluster",
        icon: <path d="M10 3v4M10 7 4.500 13M10 7l5.500 6M3 13h4v4H3zM13 13h4v4h-4zM8 3h4v4H8z" />,
      },
    ],
  },
];

/** The pages that the session may open, by area. */
export function Navigation({ current }: { readonly current: string }) {
  const { page } = useAccountPaths();
  const { session } = useScope();
  return (
    <nav aria-label="Main" className="nav">
      {GROUPS.map(({ title, entries }) => {
        const visible = entries.filter((entry) => isPageAllowed(entry.page, session));
        if (visible.length === 0) return null;
        const id = title === null ? undefined : `nav-${title.toLowerCase()}`;
        return (
          <div key={entries[0]?.page} className="nav-group">
            {title !== null && (
              <span className="nav-title" id={id}>
                {title}
              </span>
            )}
            <ul aria-labelledby={id}>
              {visible.map((entry) => (
                <li key={entry.page}>
                  <Link
                    to={entry.page === "" ? page() : page(entry.page)}
                    aria-current={
                      entry.page === current || entry.also?.includes(current) === true ? "page" : undefined
                    }
                  >
                    <svg viewBox="0 0 20 20" aria-hidden="true" className="nav-icon">
                      {entry.icon}
                    </svg>
                    {entry.title}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}
