/** Stored calls of one gateway or of all, newest first: a histogram, one line per call, and the call that is selected beside them. */
import type { FoundCall } from "@signalbox/client";
import { type ReactNode, Suspense, useEffect, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { PartLoading } from "../../../components/loading.tsx";
import { Menu } from "../../../components/menu.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { withQuery } from "../../../http/api.ts";
import { lazyPart } from "../../../http/load-part.ts";
import { useList } from "../../../http/use-list.ts";
import { usePaused } from "../../../http/use-paused.ts";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { CallHistogram } from "./call-histogram.tsx";
import { CallTable } from "./call-table.tsx";
import { type LogColumn, OPTIONAL_COLUMNS, useLogColumns } from "./log-columns.ts";
import { LogFilters } from "./log-filters.tsx";
import { useLogFilters } from "./use-log-filters.ts";

const CallPanel = lazyPart(async () => (await import("./call-panel.tsx")).CallPanel);

const LIMIT = 50;
/** A search reads bodies, so it begins when the typing pauses. */
const PAUSE_MS = 400;
/** Short enough for new calls to appear promptly. A search in texts or metadata is not repeated: it reads many calls. */
const REFRESH_MS = 2500;
/** From this width on, a call has room beside the list. */
const WIDE = "(width >= 1100px)";

/** `gatewayId`: null for all gateways. `empty` is shown while there are no calls at all. */
export function CallList({
  gatewayId,
  empty,
}: {
  readonly gatewayId: string | null;
  readonly empty: ReactNode;
}) {
  const { api } = useAccountPaths();
  const filters = useLogFilters();
  const [isLive, setLive] = useState(true);
  const [shown, setShown] = useLogColumns();
  // `gateway/call`, in the URL: a link shows the same call beside the same list.
  const [selected, setSelected] = useQueryValue("call");
  const q = usePaused(filters.text[0], PAUSE_MS);
  const search = usePaused(filters.metadata[0], PAUSE_MS);
  const isSearch = q !== "" || search !== "" || filters.entry[0] !== "";
  const query = { ...filters.query, search, q, ...(gatewayId === null ? {} : { gateway_id: gatewayId }) };
  const calls = useList<FoundCall>(
    withQuery(api("ai-gateway", "logs"), { ...query, limit: LIMIT }),
    isLive && !isSearch ? { refreshMs: REFRESH_MS } : {},
  );
  // A refresh reads all loaded pages again, and would move what the user reads.
  const showMore = () => {
    setLive(false);
    calls.loadMore();
  };
  const isWide = useMedia(WIDE);
  const [ofGateway = "", ofCall = ""] = selected.split("/");
  const hasPanel = isWide && ofCall !== "";
  const columns = columnsBeside(shown, hasPanel, gatewayId === null);
  return (
    <div className="stack log">
      <LogFilters filters={filters} hasGateway={gatewayId === null}>
        <span className="log-end">
          <Button
            size="small"
            aria-pressed={isLive}
            title={isLive ? "New calls appear by themselves" : "The list stays as it is"}
            onClick={() => setLive(!isLive)}
          >
            <span className={isLive ? "live-dot" : "live-dot live-dot-off"} aria-hidden="true" />
            {isLive ? "Live" : "Paused"}
          </Button>
          <Menu label="Columns">
            {OPTIONAL_COLUMNS.filter(([name]) => gatewayId === null || name !== "gateway").map(
              ([name, title]) => (
                <label key={name} className="check">
                  <input
                    type="checkbox"
                    checked={shown.has(name)}
                    onChange={({ target }) => setShown(name, target.checked)}
                  />
                  <span>{title}</span>
                </label>
              ),
            )}
          </Menu>
          <Menu label="Export" title="Export these calls">
            {(["csv", "ndjson"] as const).map((format) => (
              <a
                key={format}
                className="button button-small"
                href={withQuery(api("ai-gateway", "logs", "export"), { ...query, format })}
                download={`calls.${format}`}
              >
                {format.toUpperCase()}
                <span className="visually-hidden"> export of these calls</span>
              </a>
            ))}
          </Menu>
        </span>
      </LogFilters>
      <CallHistogram gatewayId={gatewayId} filters={filters} />
      <ResourceView of={calls}>
        {(rows) =>
          rows.length === 0 && !calls.hasMore ? (
            filters.isFiltered ? (
              <EmptyState title="No matching calls">
                <p>
                  Change or clear the filters. Only calls whose bodies are stored can be searched by text.
                </p>
              </EmptyState>
            ) : (
              <EmptyState title="No calls yet">{empty}</EmptyState>
            )
          ) : (
            <div className={hasPanel ? "log-split" : ""}>
              <div className="stack">
                <CallTable
                  calls={rows}
                  columns={columns}
                  selected={hasPanel ? ofCall : null}
                  onSelect={(call) => {
                    if (isWide) setSelected(`${call.gateway_id}/${call.id}`);
                    return isWide;
                  }}
                />
                {calls.hasMore && (
                  <div className="row">
                    <Button onClick={showMore}>{isSearch ? "Search further back" : "Show more"}</Button>
                  </div>
                )}
              </div>
              {hasPanel && (
                <Suspense fallback={<PartLoading />}>
                  <CallPanel
                    key={ofCall}
                    gatewayId={ofGateway}
                    callId={ofCall}
                    onClose={() => setSelected("")}
                  />
                </Suspense>
              )}
            </div>
          )
        }
      </ResourceView>
    </div>
  );
}

/** Beside a call, there is room for the columns that tell the calls apart. */
function columnsBeside(
  shown: ReadonlySet<LogColumn>,
  hasPanel: boolean,
  hasGateway: boolean,
): ReadonlySet<LogColumn> {
  const left: readonly LogColumn[] = ["duration", "cost"];
  return new Set(
    [...shown].filter((name) => (hasGateway || name !== "gateway") && (!hasPanel || left.includes(name))),
  );
}

function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const onChange = () => setMatches(list.matches);
    list.addEventListener("change", onChange);
    return () => list.removeEventListener("change", onChange);
  }, [query]);
  return matches;
}
