/** Stored calls of all gateways with previews, and search in prompts and answers. */
import type { FoundCall } from "@signalbox/client";
import { useEffect, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Table } from "../../../components/table.tsx";
import { Time } from "../../../components/time.tsx";
import { duration, money } from "../../../format/number.ts";
import { withQuery } from "../../../http/api.ts";
import { useList } from "../../../http/use-list.ts";
import { Link } from "../../../routing/link.tsx";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { GatewaysTabs } from "../gateways-tabs.tsx";
import { StatusBadge } from "./logs-tab.tsx";
import { TIMES, useLogFilters } from "./use-log-filters.ts";

const LIMIT = 50;
/** A search reads bodies, so it begins when the typing pauses. */
const PAUSE_MS = 400;

export function AllLogsPage() {
  const { api, page } = useAccountPaths();
  const filters = useLogFilters();
  const [text, setText] = useQueryValue("q");
  const [gateway, setGateway] = useQueryValue("gateway");
  const q = usePaused(text, PAUSE_MS);
  const query = { ...filters.query, q, gateway_id: gateway };
  const calls = useList<FoundCall>(withQuery(api("ai-gateway", "logs"), { ...query, limit: LIMIT }));
  const [status, setStatus] = filters.outcome;
  const [time, setTime] = filters.time;
  const [model, setModel] = filters.model;
  const isFiltered = filters.isFiltered || q !== "" || gateway !== "";
  return (
    <>
      <PageHeader
        title="Logs"
        actions={
          <>
            {(["csv", "ndjson"] as const).map((format) => (
              <a
                key={format}
                className="button"
                href={withQuery(api("ai-gateway", "logs", "export"), { ...query, format })}
                download={`calls.${format}`}
              >
                Export {format.toUpperCase()}
              </a>
            ))}
          </>
        }
      >
        Calls of all gateways in this account, newest first.
      </PageHeader>
      <GatewaysTabs current="logs" />
      <div className="filters">
        <Field label="Search">
          <input
            type="search"
            value={text}
            maxLength={256}
            placeholder="In prompt or answer"
            onChange={({ target }) => setText(target.value)}
          />
        </Field>
        <Field label="Gateway">
          <input
            type="search"
            value={gateway}
            placeholder="All"
            onChange={({ target }) => setGateway(target.value.trim())}
          />
        </Field>
        <Field label="Model">
          <input
            type="search"
            value={model}
            placeholder="Any"
            onChange={({ target }) => setModel(target.value)}
          />
        </Field>
        <Field label="Status">
          <select value={status} onChange={({ target }) => setStatus(target.value)}>
            <option value="">Any</option>
            <option value="success">Success</option>
            <option value="error">Error</option>
          </select>
        </Field>
        <Field label="Time range">
          <select value={time} onChange={({ target }) => setTime(target.value)}>
            {TIMES.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <ResourceView of={calls}>
        {(rows) =>
          rows.length === 0 && !calls.hasMore ? (
            <EmptyState title={isFiltered ? "No matching calls" : "No calls yet"}>
              <p>
                {isFiltered
                  ? "Change or clear the filters. Only calls whose bodies are stored can be searched by text."
                  : "Calls appear here when their responses are complete."}
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Calls"
              rows={rows}
              keyOf={(call) => call.id}
              columns={[
                {
                  title: "Time",
                  cell: (call) => (
                    <Link to={page("gateways", call.gateway_id, "logs", call.id)} className="nowrap">
                      <Time at={call.created_at} />
                    </Link>
                  ),
                },
                { title: "Status", cell: (call) => <StatusBadge call={call} /> },
                { title: "Gateway", isMinor: true, cell: (call) => call.gateway_id },
                { title: "Model", cell: (call) => (call.model === "" ? "none" : call.model) },
                { title: "Prompt", cell: (call) => <Preview text={call.prompt} /> },
                { title: "Answer", cell: (call) => <Preview text={call.answer} /> },
                { title: "Cost", align: "end", isMinor: true, cell: (call) => money(call.cost) },
                { title: "Duration", align: "end", isMinor: true, cell: (call) => duration(call.duration) },
              ]}
            />
          )
        }
      </ResourceView>
      {calls.hasMore && (
        <Button onClick={calls.loadMore}>{q === "" ? "Show more" : "Search further back"}</Button>
      )}
    </>
  );
}

function Preview({ text }: { readonly text: string | null }) {
  return text === null ? <span className="muted">–</span> : <span className="preview">{text}</span>;
}

/** The value after it has not changed for a while. */
function usePaused(value: string, pauseMs: number): string {
  const [paused, setPaused] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value, pauseMs]);
  return paused;
}
