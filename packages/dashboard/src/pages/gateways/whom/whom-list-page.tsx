/** Users or sessions of the time range, by cost: who calls, and what the conversations cost. */
import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { TimeRangePicker } from "../../../components/time-range/time-range-picker.tsx";
import { useTimeRange } from "../../../components/time-range/use-time-range.ts";
import { count, durationOf, moneyOf, share } from "../../../format/number.ts";
import { read, withQuery } from "../../../http/api.ts";
import { usePaused } from "../../../http/use-paused.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import type { Usage } from "../analytics/usage.ts";
import { SESSION_KEYS } from "../logs/related-calls.tsx";
import { addressOf, groupOf, valueOf, type WhomKind } from "./whom-kind.ts";

const LIMIT = 100;
const PAUSE_MS = 400;

export function UsersPage() {
  return <WhomListPage kind={{ kind: "user", key: "user" }} />;
}

export function SessionsPage() {
  const [key] = useQueryValue("key", SESSION_KEYS[0]);
  return <WhomListPage kind={{ kind: "session", key: usePaused(key, PAUSE_MS) }} />;
}

function WhomListPage({ kind }: { readonly kind: WhomKind }) {
  const { api, page } = useAccountPaths();
  const time = useTimeRange("7d");
  const [key, setKey] = useQueryValue("key", SESSION_KEYS[0]);
  const isUsers = kind.kind === "user";
  const path = withQuery(api("ai-gateway", "usage"), {
    group_by: groupOf(kind),
    start: new Date(time.range.from).toISOString(),
    end: new Date(time.range.to).toISOString(),
    limit: LIMIT,
  });
  const usage = useResource(kind.key === "" ? null : path, async (signal) => {
    const rows = await read<Usage[]>(path, signal);
    return {
      rest: rows.find((row) => row.other === true),
      rows: rows
        .flatMap((row) => {
          const value = row.other === true ? null : valueOf(kind, row);
          return value === null ? [] : [{ ...row, value }];
        })
        .sort((a, b) => b.cost - a.cost || b.calls - a.calls),
    };
  });
  return (
    <>
      <PageHeader
        title={isUsers ? "Users" : "Sessions"}
        actions={
          <div className="toolbar">
            {!isUsers && (
              <Field label="Key of the metadata">
                <input type="search" value={key} onChange={({ target }) => setKey(target.value.trim())} />
              </Field>
            )}
            <TimeRangePicker state={time} />
          </div>
        }
      >
        {isUsers
          ? "Who calls: the user in the metadata of calls."
          : "Calls that belong together: those with the same value of a key in their metadata."}
      </PageHeader>
      <ResourceView of={usage}>
        {({ rows, rest }) =>
          rows.length === 0 ? (
            <EmptyState title={isUsers ? "No calls of a user in this time" : "No session in this time"}>
              <p>
                Send the header <code>gw-aig-metadata: {`{"${kind.key}":"…"}`}</code> with each call. Calls
                are then grouped by it, and can be found by it.
              </p>
            </EmptyState>
          ) : (
            <>
              <Table
                label={isUsers ? "Users" : "Sessions"}
                rows={rows}
                keyOf={({ value }) => value}
                columns={[
                  {
                    title: isUsers ? "User" : "Session",
                    cell: ({ value }) => (
                      <Link to={addressOf(page, kind, value)} className="long-id" title={value}>
                        {value}
                      </Link>
                    ),
                  },
                  { title: "Calls", align: "end", cell: ({ calls }) => count(calls) },
                  { title: "Errors", align: "end", cell: ({ errors, calls }) => share(errors, calls) },
                  {
                    title: "Tokens",
                    align: "end",
                    isMinor: true,
                    cell: (row) => count(row.tokens_in + row.tokens_out),
                  },
                  { title: "Cost", amount: ({ cost }) => cost, formatOf: moneyOf },
                  { title: "p95", isMinor: true, amount: (row) => row.duration_p95, formatOf: durationOf },
                ]}
              />
              {rest !== undefined && (
                <p className="muted small">
                  The {LIMIT} with the most calls are listed; {count(rest.calls)} calls are of others.
                </p>
              )}
            </>
          )
        }
      </ResourceView>
    </>
  );
}
