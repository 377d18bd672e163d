import { useState } from "react";
import { Field } from "../field.tsx";
import { CUSTOM, RANGES } from "./time-range.ts";
import { ANY_TIME, type TimeRangeState } from "./use-time-range.ts";

/** Selects a time range: one of the common ones, or two times of one's own. */
export function TimeRangePicker({ state }: { readonly state: TimeRangeState }) {
  const { range, isAny, hasAny, setName, setCustom } = state;
  const from = toLocal(range.from);
  const to = toLocal(range.to);
  const select = (name: string) =>
    name === CUSTOM ? setCustom(iso(range.from), iso(range.to)) : setName(name);
  // A time beyond the other one moves the other one, too: the range keeps its length.
  const setOrdered = (start: number, end: number, changed: "from" | "to") => {
    const span = range.to - range.from;
    if (start < end) setCustom(iso(start), iso(end));
    else if (changed === "from") setCustom(iso(start), iso(start + span));
    else setCustom(iso(end - span), iso(end));
  };
  return (
    <>
      <Field label="Time range">
        <select value={isAny ? ANY_TIME : range.name} onChange={({ target }) => select(target.value)}>
          {hasAny && <option value={ANY_TIME}>Any time</option>}
          {RANGES.map(({ name, title }) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
          <option value={CUSTOM}>Custom…</option>
        </select>
      </Field>
      {!isAny && range.name === CUSTOM && (
        <>
          <TimeField label="From" value={from} max={to} onChange={(at) => setOrdered(at, range.to, "from")} />
          <TimeField label="To" value={to} min={from} onChange={(at) => setOrdered(range.from, at, "to")} />
        </>
      )}
    </>
  );
}

interface TimeFieldProps {
  readonly label: string;
  /** Local time without a zone. */
  readonly value: string;
  readonly min?: string;
  readonly max?: string;
  /** Called with the time in milliseconds. */
  readonly onChange: (at: number) => void;
}

/** Keeps what is typed until the field is left: the range is rounded, and a year is complete only with its fourth digit. */
function TimeField({ label, value, min, max, onChange }: TimeFieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <Field label={label}>
      <input
        type="datetime-local"
        value={typed ?? value}
        min={min}
        max={max}
        onChange={({ target }) => {
          setTyped(target.value);
          if (isComplete(target.value)) onChange(Date.parse(target.value));
        }}
        onBlur={() => setTyped(null)}
      />
    </Field>
  );
}

/** Browsers report a year as it is typed: 0002, 0020, 0202, 2026. */
function isComplete(text: string): boolean {
  return text >= "1970" && !Number.isNaN(Date.parse(text));
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

/** The form that `datetime-local` takes: local time without a zone. */
function toLocal(time: number): string {
  const date = new Date(time);
  return new Date(time - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
