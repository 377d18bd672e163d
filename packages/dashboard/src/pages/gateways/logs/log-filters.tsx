/** What the list of calls shows: search, filters as chips, time range, all on one line. Each filter is in the URL. */
import type { ReactNode } from "react";
import { Field } from "../../../components/field.tsx";
import { Menu } from "../../../components/menu.tsx";
import { SelectField } from "../../../components/select-field.tsx";
import { TimeRangePicker } from "../../../components/time-range/time-range-picker.tsx";
import type { LogFilterState } from "./use-log-filters.ts";

interface LogFiltersProps {
  readonly filters: LogFilterState;
  readonly hasGateway: boolean;
  /** Further menus at the end of the line. */
  readonly children?: ReactNode;
}

const OUTCOMES = [
  ["", "Any"],
  ["success", "Success"],
  ["error", "Error"],
] as const;
const CACHE = [
  ["", "Any"],
  ["true", "Cached"],
  ["false", "Not cached"],
] as const;

export function LogFilters({ filters, hasGateway, children }: LogFiltersProps) {
  const chips = [
    ...(hasGateway ? [["Gateway", filters.gateway] as const] : []),
    ["Provider", filters.provider] as const,
    ["Model", filters.model] as const,
    ["Status", filters.outcome] as const,
    ["Cache", filters.cached] as const,
    ["Metadata", filters.entry] as const,
    ["Metadata contains", filters.metadata] as const,
  ].filter(([, [value]]) => value !== "");
  return (
    <div className="log-bar">
      <input
        type="search"
        className="log-search"
        aria-label="Search"
        placeholder="Search prompts and answers"
        value={filters.text[0]}
        maxLength={256}
        onChange={({ target }) => filters.text[1](target.value)}
      />
      {chips.map(([title, [value, set]]) => (
        <span key={title} className="chip">
          <span className="muted">{title}</span> {chipText(title, value)}
          <button type="button" aria-label={`Remove the filter ${title}`} onClick={() => set("")}>
            ✕
          </button>
        </span>
      ))}
      <Menu label="+ Filter" title="Filters">
        <FilterFields filters={filters} hasGateway={hasGateway} />
      </Menu>
      <div className="toolbar">
        <TimeRangePicker state={filters.time} />
      </div>
      {children}
    </div>
  );
}

/** No search fields: Escape would clear them in place of closing the menu. */
function FilterFields({ filters, hasGateway }: LogFiltersProps) {
  const text = (title: string, [value, set]: LogFilterState["model"], placeholder: string) => (
    <Field label={title}>
      <input
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
    <>
      {hasGateway && text("Gateway", filters.gateway, "All")}
      {text("Provider", filters.provider, "Any")}
      {text("Model", filters.model, "Any")}
      {choice("Status", filters.outcome, OUTCOMES)}
      {choice("Cache", filters.cached, CACHE)}
      {text("Metadata", filters.entry, "key=value")}
      {text("Search metadata", filters.metadata, "Part of a key or value")}
    </>
  );
}

function chipText(title: string, value: string): string {
  const options = title === "Status" ? OUTCOMES : title === "Cache" ? CACHE : [];
  return options.find(([option]) => option === value)?.[1] ?? value;
}
