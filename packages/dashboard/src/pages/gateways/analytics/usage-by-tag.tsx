import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { count, duration, money, share } from "../../../format/number.ts";
import { read, withQuery } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import type { Usage } from "./usage.ts";

/** Who used how much, by a tag of the gateways: team, product, environment. */
export function UsageByTag() {
  const { api, page } = useAccountPaths();
  const keysPath = api("tags", "keys");
  const keys = useResource(keysPath, (signal) => read<string[]>(keysPath, signal));
  const [chosen, choose] = useQueryValue("tag");
  const key = chosen === "" ? (keys.value?.[0] ?? null) : chosen;
  const path = key === null ? null : withQuery(api("ai-gateway", "usage"), { group_by: `tag:${key}` });
  const usage = useResource(path, (signal) => read<Usage[]>(path ?? "", signal));
  return (
    <section className="section" aria-labelledby="by-tag">
      <h2 id="by-tag">By tag, last 7 days</h2>
      <ResourceView of={keys}>
        {(all) =>
          all.length === 0 ? (
            <EmptyState title="No tags yet">
              <p>
                <Link to={page("tags")}>Tag your gateways</Link>, by team or environment say, and their usage
                is summed up here.
              </p>
            </EmptyState>
          ) : (
            <>
              <div className="filters">
                <Field label="Tag">
                  <select value={key ?? ""} onChange={({ target }) => choose(target.value)}>
                    {all.map((one) => (
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
                        cell: (row) => row.tag ?? <span className="muted">without this tag</span>,
                      },
                      { title: "Calls", align: "end", cell: (row) => count(row.calls) },
                      { title: "Errors", align: "end", cell: (row) => share(row.errors, row.calls) },
                      {
                        title: "Tokens",
                        align: "end",
                        isMinor: true,
                        cell: (row) => count(row.tokens_in + row.tokens_out),
                      },
                      { title: "Cost", align: "end", cell: (row) => money(row.cost) },
                      {
                        title: "Latency p95",
                        align: "end",
                        isMinor: true,
                        cell: (row) => duration(row.duration_p95),
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
