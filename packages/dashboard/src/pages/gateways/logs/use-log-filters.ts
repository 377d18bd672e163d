/** The log filters, stored in the URL so that a filtered view can be linked to. */
import { useMemo } from "react";
import {
  ANY_TIME,
  type TimeRangeState,
  useTimeRange,
} from "../../../components/time-range/use-time-range.ts";
import { CUSTOM } from "../../../components/time-range/time-range.ts";
import { usePaused } from "../../../http/use-paused.ts";
import { useQueryValue } from "../../../routing/location.ts";

/** What is typed is looked for when the typing pauses: rows are read for it. */
const PAUSE_MS = 400;

type TextFilter = readonly [string, (value: string) => void];

export interface LogFilterState {
  /** Text in prompts and answers. */
  readonly text: TextFilter;
  readonly gateway: TextFilter;
  readonly provider: TextFilter;
  readonly model: TextFilter;
  readonly outcome: TextFilter;
  readonly cached: TextFilter;
  /** Text in keys and values of the metadata. */
  readonly metadata: TextFilter;
  /** A key and a value of the metadata: `user=ada`. */
  readonly entry: TextFilter;
  readonly time: TimeRangeState;
  /** Query parameters of the log API, without the text. */
  readonly query: Readonly<Record<string, string>>;
  readonly isFiltered: boolean;
}

export function useLogFilters(): LogFilterState {
  const text = useQueryValue("q");
  const gateway = useQueryValue("gateway");
  const provider = useQueryValue("provider");
  const model = useQueryValue("model");
  const outcome = useQueryValue("outcome");
  const cached = useQueryValue("cached");
  const metadata = useQueryValue("search");
  const entry = useQueryValue("metadata");
  const time = useTimeRange(ANY_TIME);
  const { from } = time.range;
  const isOwnRange = time.range.name === CUSTOM;
  // The start is that of the selection: one that moved on would load the list anew each minute.
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- see above
  const start = useMemo(() => new Date(from).toISOString(), [time.range.name, isOwnRange ? from : 0]);
  const providerText = usePaused(provider[0], PAUSE_MS);
  const modelText = usePaused(model[0], PAUSE_MS);
  const entryText = usePaused(entry[0], PAUSE_MS);
  const conditions = [
    ...[
      ["provider", providerText],
      ["model", modelText],
    ].flatMap(([key, value]) => (value === "" ? [] : [{ key, operator: "contains", value: [value] }])),
    ...entryConditions(entryText),
  ];
  const query = {
    search: metadata[0],
    gateway_id: gateway[0],
    success: outcome[0] === "" ? "" : String(outcome[0] === "success"),
    cached: cached[0],
    start_date: time.isAny ? "" : start,
    // A range that ends now has no end, so that a call which ends in this moment is in it.
    end_date: time.isAny || time.range.to > Date.now() ? "" : new Date(time.range.to).toISOString(),
    filters: conditions.length === 0 ? "" : JSON.stringify(conditions),
  };
  const isFiltered = text[0] !== "" || Object.values(query).some((value) => value !== "");
  return { text, gateway, provider, model, outcome, cached, metadata, entry, time, query, isFiltered };
}

/** The filters of the log API for `key=value`; a key alone finds calls that have it. */
export function entryConditions(entry: string): { key: string; operator: string; value: string[] }[] {
  const [, key = "", value] = /^([^=]*)(?:=(.*))?$/s.exec(entry) ?? [];
  if (key === "") return [];
  const ofKey = { key: "metadata.key", operator: "eq", value: [key] };
  return value === undefined || value === ""
    ? [ofKey]
    : [ofKey, { key: "metadata.value", operator: "eq", value: [value] }];
}
