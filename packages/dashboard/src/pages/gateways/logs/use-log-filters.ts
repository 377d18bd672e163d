/** The log filters, stored in the URL so that a filtered view can be linked to. */
import { useMemo } from "react";
import { useQueryValue } from "../../../routing/location.ts";

const HOUR_MS = 3_600_000;

export const TIMES = [
  { name: "", title: "Any time", hours: null },
  { name: "1h", title: "Last hour", hours: 1 },
  { name: "24h", title: "Last 24 hours", hours: 24 },
  { name: "7d", title: "Last 7 days", hours: 168 },
] as const;

export interface LogFilterState {
  readonly provider: readonly [string, (value: string) => void];
  readonly model: readonly [string, (value: string) => void];
  readonly outcome: readonly [string, (value: string) => void];
  readonly cached: readonly [string, (value: string) => void];
  readonly time: readonly [string, (value: string) => void];
  readonly search: readonly [string, (value: string) => void];
  /** Query parameters of the log API. */
  readonly query: Readonly<Record<string, string>>;
  readonly isFiltered: boolean;
}

export function useLogFilters(): LogFilterState {
  const provider = useQueryValue("provider");
  const model = useQueryValue("model");
  const outcome = useQueryValue("outcome");
  const cached = useQueryValue("cached");
  const time = useQueryValue("time");
  const search = useQueryValue("search");
  const hours = TIMES.find(({ name }) => name === time[0])?.hours ?? null;
  // Computed when the time range is selected: a changing start would reload the log on every render.
  const since = useMemo(
    () => (hours === null ? "" : new Date(Date.now() - hours * HOUR_MS).toISOString()),
    [hours],
  );
  const contains = [
    ["provider", provider[0]],
    ["model", model[0]],
  ].flatMap(([key, value]) => (value === "" ? [] : [{ key, operator: "contains", value: [value] }]));
  const query = {
    search: search[0],
    success: outcome[0] === "" ? "" : String(outcome[0] === "success"),
    cached: cached[0],
    start_date: since,
    filters: contains.length === 0 ? "" : JSON.stringify(contains),
  };
  return {
    provider,
    model,
    outcome,
    cached,
    time,
    search,
    query,
    isFiltered: Object.values(query).some((value) => value !== ""),
  };
}
