import { type ReactNode, useEffect } from "react";
import { Link } from "../routing/link.tsx";

export interface Crumb {
  readonly title: string;
  readonly to: string;
}

interface PageHeaderProps {
  readonly title: string;
  /** Parent pages, outermost first. */
  readonly crumbs?: readonly Crumb[];
  readonly children?: ReactNode;
  /** Buttons on the right. */
  readonly actions?: ReactNode;
}

export function PageHeader({ title, crumbs = [], children, actions }: PageHeaderProps) {
  useEffect(() => {
    document.title = `${title} · Signalbox`;
  }, [title]);
  return (
    <header className="page-header">
      <div>
        {crumbs.length > 0 && (
          <nav aria-label="Breadcrumb" className="crumbs">
            <ol>
              {crumbs.map((crumb) => (
                <li key={crumb.to}>
                  <Link to={crumb.to}>{crumb.title}</Link>
                </li>
              ))}
            </ol>
          </nav>
        )}
        <h1>{title}</h1>
        {children !== undefined && <p className="muted page-lead">{children}</p>}
      </div>
      {actions !== undefined && <div className="page-actions">{actions}</div>}
    </header>
  );
}
