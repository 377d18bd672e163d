import { Field } from "../../components/field.tsx";
import type { Period } from "./period.ts";

interface PeriodFieldsProps {
  readonly period: Period;
  readonly onChange: (part: Partial<Period>) => void;
}

export function PeriodFields({ period, onChange }: PeriodFieldsProps) {
  return (
    <>
      <Field label="Period">
        <select
          value={period.unit}
          onChange={({ target }) => onChange({ unit: target.value as Period["unit"] })}
        >
          <option value="day">Day</option>
          <option value="week">Week</option>
          <option value="month">Month</option>
          <option value="seconds">Seconds</option>
          <option value="credit">In total (prepaid)</option>
        </select>
      </Field>
      {period.unit === "seconds" && (
        <>
          <Field label="Seconds">
            <input
              type="number"
              required
              min={1}
              step={1}
              value={period.seconds}
              onChange={({ target }) => onChange({ seconds: target.value })}
            />
          </Field>
          <Field label="Window">
            <select
              value={period.isSliding ? "sliding" : "fixed"}
              onChange={({ target }) => onChange({ isSliding: target.value === "sliding" })}
            >
              <option value="fixed">Fixed</option>
              <option value="sliding">Sliding</option>
            </select>
          </Field>
        </>
      )}
      {["day", "week", "month"].includes(period.unit) && (
        <Field label="Time zone">
          <input
            value={period.timezone}
            placeholder="UTC"
            spellCheck={false}
            onChange={({ target }) => onChange({ timezone: target.value })}
          />
        </Field>
      )}
    </>
  );
}
