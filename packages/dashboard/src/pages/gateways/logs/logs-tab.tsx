import { useState } from "react";
import { Badge } from "../../../components/badge.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Pager } from "../../../components/pager.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { count, duration, money } from "../../../format/number.ts";
import { request, withQuery } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import type { Call } from "./call.ts";
import { LogFilters } from "./log-filters.tsx";
import { useLogFilters } from "./use-log-filters.ts";

const PER_PAGE = 50;
/** Short enough for new calls to appear promptly; each refresh is one cheap request. */
const REFRESH_MS = 2000;

export function LogsTab({ gatewayId }: { readonly gatewayId: string }) {
  const { api, page } = useAccountPaths();
  const filters = useLogFilters();
  const [isLive, setLive] = useState(true);
  const [pageNumber, setPageNumber] = useState(1);
  const path = withQuery(api("ai-gateway", "gateways", gatewayId, "logs"), {
    ...filters.query,
    page: pageNumber,
    per_page: PER_PAGE,
  });
  const calls = useResource(
    path,
    async (signal) => {
      const { result, info } = await request<Call[]>(path, { signal });
      return { rows: result, total: info.total_count ?? result.length };
    },
    isLive && pageNumber === 1 ? { refreshMs: REFRESH_MS } : {},
  );
  return (
    <div className="stack">
      <LogFilters filters={filters} isLive={isLive} onLive={setLive} onChange={() => setPageNumber(1)} />
      <ResourceView of={calls}>
        {({ rows, total }) =>
          rows.length === 0 ? (
            <EmptyState title={filters.isFiltered ? "No matching calls" : "No calls yet"}>
              <p>
                {filters.isFiltered
                  ? "Change or clear the filters. The search covers only the metadata of calls; the logs of all gateways can be searched by prompt and answer."
                  : "Send a call with the client code on the Settings tab. It appears here when its response is complete. Calls rejected by authentication are not logged."}
              </p>
            </EmptyState>
          ) : (
            <>
              <Table
                label="Calls"
                rows={rows}
                keyOf={(call) => call.id}
                columns={[
                  {
                    title: "Time",
                    cell: (call) => (
                      <Link to={page("gateways", gatewayId, "logs", call.id)} className="nowrap">
                        <Time at={call.created_at} />
                      </Link>
                    ),
                  },
                  { title: "Status", cell: (call) => <StatusBadge call={call} /> },
                  {
                    title: "Model",
                    cell: (call) => (
                      <>
                        {call.model === "" ? <span className="muted">none</span> : call.model}{" "}
                        <span className="muted small">{call.provider}</span>
                      </>
                    ),
                  },
                  { title: "Type", isMinor: true, cell: (call) => call.request_type },
                  {
                    title: "Tokens",
                    align: "end",
                    isMinor: true,
                    cell: (call) => (
                      <span className="nowrap">
                        {count(call.tokens_in)} → {count(call.tokens_out)}
                      </span>
                    ),
                  },
                  { title: "Cost", align: "end", isMinor: true, cell: (call) => money(call.cost) },
                  { title: "Duration", align: "end", cell: (call) => duration(call.duration) },
                ]}
              />
              <Pager page={pageNumber} perPage={PER_PAGE} total={total} onChange={setPageNumber} />
            </>
          )
        }
      </ResourceView>
    </div>
  );
}

export function StatusBadge({ call }: { readonly call: Call }) {
  return (
    <span className="badges">
      <Badge tone={call.success ? "good" : "bad"}>{call.status_code}</Badge>
      {call.cached && <Badge tone="accent">cached</Badge>}
      {call.step > 0 && <Badge tone="warn">fallback {call.step}</Badge>}
    </span>
  );
}
