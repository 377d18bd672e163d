import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { useTimeRange } from "../../../components/time-range/use-time-range.ts";
import { Time } from "../../../components/time.tsx";
import { Table } from "../../../components/table.tsx";
import { count, durationOf, moneyOf, share } from "../../../format/number.ts";
import { request, withQuery } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useQueryValue } from "../../../routing/location.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../../session/session.ts";
import { addressOf } from "../whom/whom-kind.ts";
import { hoursTitle } from "./hours-title.ts";
import type { Usage } from "./usage.ts";
import { labelOf, WHOM_GROUPS } from "./whom.ts";

/** Usage in the selected time range by token, owner, user, or the value of a metadata key. */
export function UsageByWhom({ gatewayId }: { readonly gatewayId: string | null }) {
  const { api } = useAccountPaths();
  const [group, setGroup] = useQueryValue("by", "token");
  const [key, setKey] = useQueryValue("key", "team");
  const { range } = useTimeRange();
  const groupBy = group === "metadata" || group === "token_tag" ? `${group}:${key}` : group;
  const query = {
    group_by: groupBy,
    start: new Date(range.from).toISOString(),
    end: new Date(range.to).toISOString(),
    gateway_id: gatewayId ?? "",
  };
  const path = groupBy.endsWith(":") ? null : withQuery(api("ai-gateway", "usage"), query);
  const usage = useResource(path, async (signal) => ({
    ...(await request<Usage[]>(path ?? "", { signal })),
    // The grouping of these rows: the selected one may already be another.
    group,
    key,
    title: WHOM_GROUPS[group] ?? "Value",
    cell: (row: Usage) => labelOf(row, group, key),
  }));
  return (
    <section className="section" aria-labelledby="by-whom">
      <h2 id="by-whom">Usage by token, owner or user, {hoursTitle(range)}</h2>
      <div className="filters">
        <Field label="By">
          <select value={group} onChange={({ target }) => setGroup(target.value)}>
            {Object.entries(WHOM_GROUPS).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </Field>
        {groupBy.includes(":") && (
          <Field label="Key">
            <input type="search" value={key} onChange={({ target }) => setKey(target.value.trim())} />
          </Field>
        )}
        {path !== null && (
          <a className="button" href={withQuery(path, { format: "csv" })} download="usage.csv">
            Export CSV
          </a>
        )}
      </div>
      <ResourceView of={usage}>
        {({ result, info, title, cell, ...grouped }) =>
          result.length === 0 ? (
            <EmptyState title="No calls in this period">
              <p>Calls with a token, an owner or metadata appear here.</p>
            </EmptyState>
          ) : (
            <>
              {typeof info.counted_from === "string" && (
                <p className="notice notice-warn">
                  The period has too many calls for one request. Counted from{" "}
                  <Time at={info.counted_from} as="exact" />.
                </p>
              )}
              {info.is_bounded === true && (
                <p className="notice notice-warn">
                  There were more values than the log tells apart: “other” may have calls of the values that
                  are listed.
                </p>
              )}
              <Table
                label="Usage by token, owner or user"
                rows={result}
                keyOf={(row) => (row.other === true ? "\0other" : (cell(row) ?? "\0none"))}
                columns={[
                  {
                    title,
                    cell: (row) =>
                      row.other === true ? (
                        <em>other ({count(info.other_values ?? 0)} values)</em>
                      ) : (
                        <Whom
                          value={cell(row)}
                          group={grouped.group}
                          metadataKey={grouped.key}
                          tokenId={row.token_id ?? null}
                        />
                      ),
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
                  { title: "p50", isMinor: true, amount: (row) => row.duration_p50, formatOf: durationOf },
                  { title: "p95", isMinor: true, amount: (row) => row.duration_p95, formatOf: durationOf },
                  {
                    title: "First token p50",
                    isMinor: true,
                    amount: (row) => row.time_to_first_token_p50,
                    formatOf: durationOf,
                  },
                ]}
              />
            </>
          )
        }
      </ResourceView>
    </section>
  );
}

interface WhomProps {
  readonly value: string | null;
  readonly group: string;
  readonly metadataKey: string;
  readonly tokenId: string | null;
}

/** Tokens, users and values of the metadata have pages. */
function Whom({ value, group, metadataKey, tokenId }: WhomProps) {
  const { page } = useAccountPaths();
  const canReadTokens = useHasPermission("tokens.edit");
  if (value === null) return <span className="muted">none</span>;
  if (group === "user")
    return <Link to={addressOf(page, { kind: "user", key: "user" }, value)}>{value}</Link>;
  if (group === "metadata")
    return <Link to={addressOf(page, { kind: "session", key: metadataKey }, value)}>{value}</Link>;
  if (group === "token" && tokenId !== null && canReadTokens)
    return <Link to={page("tokens", tokenId)}>{value}</Link>;
  return value;
}
