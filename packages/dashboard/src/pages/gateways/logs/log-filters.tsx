import { Field } from "../../../components/field.tsx";
import { SelectField } from "../../../components/select-field.tsx";
import { TimeRangePicker } from "../../../components/time-range/time-range-picker.tsx";
import type { LogFilterState } from "./use-log-filters.ts";

interface LogFiltersProps {
  readonly filters: LogFilterState;
  readonly hasGateway: boolean;
  readonly isLive: boolean;
  readonly onLive: (isLive: boolean) => void;
}

export function LogFilters({ filters, hasGateway, isLive, onLive }: LogFiltersProps) {
  const text = (title: string, [value, set]: LogFilterState["model"], placeholder: string) => (
    <Field label={title}>
      <input
        type="search"
        value={value}
        maxLength={256}
        placeholder={placeholder}
        onChange={({ target }) => set(target.value)}
      />
    </Field>
  );
  const choice = (
    title: string,
    [value, set]: LogFilterState["model"],
    options: readonly (readonly [value: string, title: string])[],
  ) => <SelectField label={title} value={value} options={options} onChange={set} />;
  return (
    <div className="filters">
      {text("Search", filters.text, "Prompt or answer")}
      {text("Search metadata", filters.metadata, "Key or value")}
      {hasGateway && text("Gateway", filters.gateway, "All")}
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
      <TimeRangePicker state={filters.time} />
      <label className="check">
        <input type="checkbox" checked={isLive} onChange={({ target }) => onLive(target.checked)} />
        <span>Auto-refresh</span>
      </label>
    </div>
  );
}
