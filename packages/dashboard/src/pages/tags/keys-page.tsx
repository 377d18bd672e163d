import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { count } from "../../format/number.ts";
import { withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { Link } from "../../routing/link.tsx";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import { TagsTabs } from "./tags-tabs.tsx";

interface KeySummary {
  readonly key: string;
  readonly count: number;
  readonly values: readonly { readonly value: string; readonly count: number }[];
  readonly has_more_values?: boolean;
}

const MAX_COLLAPSED = 12;

export function KeysPage() {
  const { api } = useAccountPaths();
  const [prefix, setPrefix] = useQueryValue("prefix");
  const keys = useList<KeySummary>(withQuery(api("tags", "summary"), { prefix, counts: true }));
  return (
    <>
      <PageHeader title="Tags">
        Tag keys and values in use, with the number of resources. Select one to see its resources.
      </PageHeader>
      <TagsTabs current="keys" />
      <div className="filters">
        <Field label="Key prefix">
          <input type="search" value={prefix} onChange={({ target }) => setPrefix(target.value)} />
        </Field>
      </div>
      <ResourceView of={keys}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={prefix === "" ? "No keys yet" : "No matching keys"}>
              <p>
                {prefix === ""
                  ? "Add a tag to a resource to see its key and value here."
                  : "No tag key starts with this text. Change or clear the prefix."}
              </p>
            </EmptyState>
          ) : (
            <ul className="key-list">
              {rows.map((row) => (
                <KeyCard key={row.key} summary={row} />
              ))}
            </ul>
          )
        }
      </ResourceView>
      {keys.hasMore && <Button onClick={keys.loadMore}>Show more</Button>}
    </>
  );
}

function KeyCard({ summary }: { readonly summary: KeySummary }) {
  const { page } = useAccountPaths();
  const [isOpen, setOpen] = useState(false);
  const values = isOpen ? summary.values : summary.values.slice(0, MAX_COLLAPSED);
  const filtered = (filter: string) => withQuery(page("tags"), { filters: JSON.stringify([filter]) });
  return (
    <li className="panel">
      <div className="row spread">
        <h2>
          <Link to={filtered(summary.key)}>{summary.key}</Link>
        </h2>
        <span className="muted small">
          {count(summary.count)} {summary.count === 1 ? "resource" : "resources"}
        </span>
      </div>
      <ul className="tag-list">
        {values.map(({ value, count: uses }) => (
          <li key={value} className="tag">
            <Link className="tag-value" to={filtered(`${summary.key}=${escapeValue(value)}`)}>
              {value === "" ? "(empty)" : value}
            </Link>
            <span className="tag-key">{count(uses)}</span>
          </li>
        ))}
      </ul>
      {summary.values.length > MAX_COLLAPSED && (
        <Button size="small" onClick={() => setOpen(!isOpen)}>
          {isOpen
            ? "Show fewer"
            : `Show all ${summary.values.length}${summary.has_more_values === true ? "+" : ""} values`}
        </Button>
      )}
    </li>
  );
}

function escapeValue(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll(",", "\\,");
}
