import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { useTimeRange } from "../../../components/time-range/use-time-range.ts";
import { Table } from "../../../components/table.tsx";
import { count, durationOf, moneyOf, share } from "../../../format/number.ts";
import { read, withQuery } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { hoursTitle } from "./hours-title.ts";
import type { Usage } from "./usage.ts";

/** Usage in the selected time range, grouped by the value of a gateway tag, such as team or environment. */
export function UsageByTag() {
  const { api, page } = useAccountPaths();
  const { range } = useTimeRange();
  const keysPath = withQuery(api("tags", "resources"), { type: "ai_gateway" });
  const keys = useResource(keysPath, async (signal) =>
    keysByUse(await read<TaggedGateway[]>(keysPath, signal)),
  );
  const [selectedKey, setSelectedKey] = useQueryValue("tag");
  const key = selectedKey === "" ? (keys.value?.[0] ?? null) : selectedKey;
  const query = {
    group_by: `tag:${key}`,
    start: new Date(range.from).toISOString(),
    end: new Date(range.to).toISOString(),
  };
  const path = key === null ? null : withQuery(api("ai-gateway", "usage"), query);
  const usage = useResource(path, (signal) => read<Usage[]>(path ?? "", signal));
  return (
    <section className="section" aria-labelledby="by-tag">
      <h2 id="by-tag">Usage by tag, {hoursTitle(range)}</h2>
      <ResourceView of={keys}>
        {(all) =>
          all.length === 0 ? (
            <EmptyState title="No gateway has tags yet">
              <p>
                <Link to={page("tags")}>Add tags to your gateways</Link>, for example by team or environment,
                to see usage by tag.
              </p>
            </EmptyState>
          ) : (
            <>
              <div className="filters">
                <Field label="Tag key">
                  <select value={key ?? ""} onChange={({ target }) => setSelectedKey(target.value)}>
                    {(key === null || all.includes(key) ? all : [key, ...all]).map((one) => (
                      <option key={one}>{one}</option>
                    ))}
                  </select>
                </Field>
              </div>
              <ResourceView of={usage}>
                {(rows) => (
                  <Table
                    label="Usage by tag"
                    rows={[...rows].sort((a, b) => b.calls - a.calls)}
                    keyOf={(row) => row.tag ?? "\0"}
                    columns={[
                      {
                        title: key ?? "Value",
                        cell: (row) => row.tag ?? <span className="muted">no tag</span>,
                      },
                      { title: "Calls", align: "end", cell: (row) => count(row.calls) },
                      { title: "Errors", align: "end", cell: (row) => share(row.errors, row.calls) },
                      {
                        title: "Tokens",
                        align: "end",
                        isMinor: true,
                        cell: (row) => count(row.tokens_in + row.tokens_out),
                      },
                      { title: "Cost", amount: (row) => row.cost, formatOf: moneyOf },
                      {
                        title: "p95 latency",
                        isMinor: true,
                        amount: (row) => row.duration_p95,
                        formatOf: durationOf,
                      },
                    ]}
                  />
                )}
              </ResourceView>
            </>
          )
        }
      </ResourceView>
    </section>
  );
}

interface TaggedGateway {
  readonly tags: Readonly<Record<string, string>>;
}

/** The keys of the gateways' tags, those of most gateways first. */
function keysByUse(gateways: readonly TaggedGateway[]): string[] {
  const uses = new Map<string, number>();
  for (const { tags } of gateways) {
    for (const key of Object.keys(tags)) uses.set(key, (uses.get(key) ?? 0) + 1);
  }
  return [...uses].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([key]) => key);
}
