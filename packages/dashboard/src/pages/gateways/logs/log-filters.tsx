import { Field } from "../../../components/field.tsx";
import { type LogFilterState, TIMES } from "./use-log-filters.ts";

interface LogFiltersProps {
  readonly filters: LogFilterState;
  readonly isLive: boolean;
  readonly onLive: (isLive: boolean) => void;
  /** Called before each change takes effect. */
  readonly onChange: () => void;
}

export function LogFilters({ filters, isLive, onLive, onChange }: LogFiltersProps) {
  const changing = (set: (value: string) => void) => (value: string) => {
    onChange();
    set(value);
  };
  const text = (title: string, [value, set]: LogFilterState["model"], placeholder: string) => (
    <Field label={title}>
      <input
        type="search"
        value={value}
        placeholder={placeholder}
        onChange={({ target }) => changing(set)(target.value)}
      />
    </Field>
  );
  const choice = (
    title: string,
    [value, set]: LogFilterState["model"],
    options: readonly (readonly [value: string, title: string])[],
  ) => (
    <Field label={title}>
      <select value={value} onChange={({ target }) => changing(set)(target.value)}>
        {options.map(([option, optionTitle]) => (
          <option key={option} value={option}>
            {optionTitle}
          </option>
        ))}
      </select>
    </Field>
  );
  return (
    <div className="filters">
      {text("Search metadata", filters.search, "Key or value")}
      {text("Provider", filters.provider, "Any")}
      {text("Model", filters.model, "Any")}
      {choice("Status", filters.outcome, [
        ["", "Any"],
        ["success", "Success"],
        ["error", "Error"],
      ])}
      {choice("Cache", filters.cached, [
        ["", "Any"],
        ["true", "Cached"],
        ["false", "Not cached"],
      ])}
      {choice(
        "Time range",
        filters.time,
        TIMES.map(({ name, title }) => [name, title] as const),
      )}
      <label className="check">
        <input type="checkbox" checked={isLive} onChange={({ target }) => onLive(target.checked)} />
        <span>Auto-refresh</span>
      </label>
    </div>
  );
}
