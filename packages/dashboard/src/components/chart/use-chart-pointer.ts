/**
 * Pointer and keys of a chart. A click opens what happened in a bucket, a drag selects a range of buckets; with keys, arrows move the cursor, Shift
 * and arrows select, Enter does what the pointer would.
 *
 * States: idle → down (button pressed in a bucket) → drag (moved to another bucket) → idle. The keys have a cursor and the bucket at which a
 * selection began.
 */
import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { bucketBelow, type ChartFrame } from "./chart-frame.ts";
import type { useChartGroup } from "./chart-group.tsx";

/** The time from which the range begins, and that before which it ends. */
type OnRange = (from: number, to: number) => void;

interface ChartPointerOptions {
  readonly group: ReturnType<typeof useChartGroup>;
  readonly frame: ChartFrame;
  readonly times: readonly number[];
  readonly bucketMs: number;
  readonly onSelect: OnRange | undefined;
  readonly onOpen: ((from: number, to: number, series: string | null) => void) | undefined;
}

export interface BucketRange {
  readonly first: number;
  readonly last: number;
}

export function useChartPointer(options: ChartPointerOptions) {
  const { group, frame, times, bucketMs, onSelect, onOpen } = options;
  const [selection, setSelection] = useState<BucketRange | null>(null);
  /** Whether the pointer or the focus is in this chart: only then it shows the values of the crosshair. */
  const [isActive, setActive] = useState(false);
  const pressed = useRef<{ readonly index: number; readonly series: string | null } | null>(null);
  const anchor = useRef<number | null>(null);
  const last = times.length - 1;

  const moveTo = (index: number | null) =>
    group.set({ time: index === null ? null : (times[index] ?? null) });
  const cursor = () => {
    const { time } = group.get();
    const index = time === null ? -1 : times.indexOf(time);
    return index === -1 ? null : index;
  };
  const indexOf = (event: PointerEvent<HTMLElement>) =>
    bucketBelow(frame, event.clientX - event.currentTarget.getBoundingClientRect().left, times.length);
  const leave = () => {
    moveTo(null);
    setActive(false);
    setSelection(null);
    pressed.current = null;
    anchor.current = null;
  };
  const open = (index: number, series: string | null) => {
    const from = times[index];
    if (from !== undefined) onOpen?.(from, from + bucketMs, series);
  };
  const select = ({ first, last: end }: BucketRange) => {
    const from = times[first];
    const to = times[end];
    if (from !== undefined && to !== undefined) onSelect?.(from, to + bucketMs);
  };

  const handlers = {
    onPointerMove(event: PointerEvent<HTMLElement>) {
      const index = indexOf(event);
      setActive(true);
      moveTo(index);
      const start = pressed.current?.index;
      if (start === undefined || onSelect === undefined || index === null) return;
      if (index !== start || selection !== null)
        setSelection({ first: Math.min(start, index), last: Math.max(start, index) });
    },
    onPointerDown(event: PointerEvent<HTMLElement>) {
      const index = indexOf(event);
      if (event.button !== 0 || index === null) return;
      const mark = (event.target as Element).closest("[data-series]");
      pressed.current = { index, series: mark?.getAttribute("data-series") ?? null };
      // The end of a drag counts outside of the chart, too. A finger scrolls the page instead.
      if (event.pointerType === "mouse") event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerUp() {
      const start = pressed.current;
      pressed.current = null;
      setSelection(null);
      if (selection !== null) select(selection);
      else if (start !== null) open(start.index, start.series);
    },
    onPointerCancel: leave,
    onPointerLeave() {
      if (pressed.current === null) leave();
    },
    onBlur: leave,
    onFocus(event: { readonly currentTarget: HTMLElement }) {
      if (!event.currentTarget.matches(":focus-visible")) return;
      setActive(true);
      if (cursor() === null) moveTo(last);
    },
    onKeyDown(event: KeyboardEvent) {
      const index = cursor();
      const at = index ?? last;
      if (event.key === "Enter") {
        if (selection !== null) select(selection);
        else open(at, null);
        setSelection(null);
        event.preventDefault();
        return;
      }
      const next = nextIndex(event.key, index, last);
      if (next === undefined) return;
      event.preventDefault();
      setActive(true);
      moveTo(next);
      if (next === null || !event.shiftKey || onSelect === undefined) {
        anchor.current = null;
        setSelection(null);
        return;
      }
      const start = (anchor.current ??= at);
      setSelection({ first: Math.min(start, next), last: Math.max(start, next) });
    },
  };
  return { handlers, selection, isActive };
}

/** Undefined: the key does not move the cursor. */
function nextIndex(key: string, index: number | null, last: number): number | null | undefined {
  const at = index ?? last;
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return Math.max(0, at - 1);
    case "ArrowRight":
    case "ArrowUp":
      return Math.min(last, at + 1);
    case "PageDown":
      return Math.max(0, at - 10);
    case "PageUp":
      return Math.min(last, at + 10);
    case "Home":
      return 0;
    case "End":
      return last;
    case "Escape":
      return index === null ? undefined : null;
    default:
      return undefined;
  }
}
