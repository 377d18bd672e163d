import type { ReactNode } from "react";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Loading } from "../../components/loading.tsx";
import type { Resource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";

interface PanelProps<T> {
  readonly id: string;
  readonly title: string;
  /** Page with all of it. */
  readonly to: string;
  readonly of: Resource<T>;
  readonly children: (value: T) => ReactNode;
}

/** A part of the overview with a link to its page. */
export function Panel<T>({ id, title, to, of, children }: PanelProps<T>) {
  return (
    <section className="panel overview-panel" id={id} aria-labelledby={`${id}-title`}>
      <div className="row spread">
        <h2 id={`${id}-title`}>{title}</h2>
        <Link to={to} className="small">
          All<span className="visually-hidden"> {title.toLowerCase()}</span>
        </Link>
      </div>
      {of.error !== null && <ErrorNotice error={of.error} onRetry={of.reload} />}
      {of.value === undefined ? of.error === null && <Loading /> : children(of.value)}
    </section>
  );
}

/** A row: what and where on the left, how much or when on the right. */
export function PanelRow({
  children,
  note,
  end,
}: {
  readonly children: ReactNode;
  readonly note?: ReactNode;
  readonly end?: ReactNode;
}) {
  return (
    <li className="panel-row">
      <div className="panel-row-main">
        <div>{children}</div>
        {note != null && <div className="muted small panel-row-note">{note}</div>}
      </div>
      {end != null && <div className="panel-row-end small">{end}</div>}
    </li>
  );
}

/** What a panel says if there is nothing to list. */
export function NothingHere({ children }: { readonly children: ReactNode }) {
  return <p className="muted small">{children}</p>;
}
