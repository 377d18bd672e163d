import { useEffect, useMemo, useState } from "react";
import { setQueryValues, useQueryValue } from "../../routing/location.ts";
import { CUSTOM, resolveRange, type TimeRange } from "./time-range.ts";

export interface TimeRangeState {
  readonly range: TimeRange;
  /** Whether all times are selected. Only if `ANY_TIME` is the initial range. */
  readonly isAny: boolean;
  /** Whether all times can be selected. */
  readonly hasAny: boolean;
  readonly setName: (name: string) => void;
  /** A part of a chart, in milliseconds. "Back" returns to the range before. */
  readonly setBetween: (from: number, to: number) => void;
  /** ISO times. */
  readonly setCustom: (from: string, to: string) => void;
}

/** For lists, which need no limits in time. */
export const ANY_TIME = "any";
const TICK_MS = 20_000;

/** The time range in the URL (`range`, and `from` and `to` of a custom one). It moves on while the page is open. */
export function useTimeRange(initial = "24h"): TimeRangeState {
  const [name] = useQueryValue("range", initial);
  const [from] = useQueryValue("from");
  const [to] = useQueryValue("to");
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const next = resolveRange(name, from, to, now, initial);
  const key = `${next.name} ${next.from} ${next.to}`;
  // The same object until a step has passed: a changing range would reload the page's data at each rendering.
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- the key names the range
  const range = useMemo(() => next, [key]);
  return {
    range,
    isAny: name === ANY_TIME && initial === ANY_TIME,
    hasAny: initial === ANY_TIME,
    setName: (value) => setQueryValues({ range: value === initial ? null : value, from: null, to: null }),
    setBetween: (start, end) =>
      setQueryValues(
        { range: CUSTOM, from: new Date(start).toISOString(), to: new Date(end).toISOString() },
        { isStep: true },
      ),
    setCustom: (start, end) => setQueryValues({ range: CUSTOM, from: start, to: end }),
  };
}
