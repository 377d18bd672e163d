/** Stored calls of one gateway or of all, newest first, with previews, filters and search in prompts and answers. */
import type { FoundCall } from "@signalbox/client";
import { type ReactNode, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { withQuery } from "../../../http/api.ts";
import { useList } from "../../../http/use-list.ts";
import { usePaused } from "../../../http/use-paused.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { CallTable } from "./call-table.tsx";
import { LogFilters } from "./log-filters.tsx";
import { useLogFilters } from "./use-log-filters.ts";

const LIMIT = 50;
/** A search reads bodies, so it begins when the typing pauses. */
const PAUSE_MS = 400;
/** Short enough for new calls to appear promptly. A search in texts or metadata is not repeated: it reads many calls. */
const REFRESH_MS = 2500;

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
  const q = usePaused(filters.text[0], PAUSE_MS);
  const search = usePaused(filters.metadata[0], PAUSE_MS);
  const isSearch = q !== "" || search !== "";
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
  return (
    <div className="stack">
      <LogFilters filters={filters} hasGateway={gatewayId === null} isLive={isLive} onLive={setLive} />
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
            <>
              <CallTable calls={rows} hasGateway={gatewayId === null} />
              <div className="row spread">
                <span className="row">
                  {calls.hasMore && (
                    <Button onClick={showMore}>{isSearch ? "Search further back" : "Show more"}</Button>
                  )}
                </span>
                <span className="row">
                  <span className="muted small">Export:</span>
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
                </span>
              </div>
            </>
          )
        }
      </ResourceView>
    </div>
  );
}
