import { parseTagFilter, SignalboxError } from "@signalbox/protocol";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { useSuggestions } from "./use-suggestions.ts";

interface TagFilterFieldProps {
  readonly filters: readonly string[];
  readonly onChange: (filters: readonly string[]) => void;
}

/** The active filters, and a field for a new filter that suggests keys and values. */
export function TagFilterField({ filters, onChange }: TagFilterFieldProps) {
  const [draft, setDraft] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const { key, operator, prefix } = splitDraft(draft);
  const suggestions = useSuggestions(operator === "" ? null : key, operator === "" ? key : prefix);
  const add = (text: string) => {
    try {
      parseTagFilter(text);
    } catch (error) {
      setProblem(error instanceof SignalboxError ? error.message : String(error));
      return;
    }
    setProblem(null);
    setDraft("");
    if (!filters.includes(text)) onChange([...filters, text]);
  };
  const pick = (text: string) => {
    if (operator === "")
      setDraft(`${draft.startsWith("!") ? "!" : ""}${text}${draft.startsWith("!") ? "" : "="}`);
    else add(draft.slice(0, draft.length - prefix.length) + escapeValue(text));
  };
  return (
    <div className="stack wide">
      <div className="row filter-row">
        <Combobox
          label="Tag filter"
          value={draft}
          onChange={(text) => {
            setProblem(null);
            setDraft(text);
          }}
          options={suggestions.map(({ text, count }) => ({ text, note: String(count) }))}
          onPick={pick}
          onEnter={() => draft !== "" && add(draft)}
          placeholder="env=prod, team, !owner, env!=dev"
        />
        <Button disabled={draft === ""} onClick={() => add(draft)}>
          Add filter
        </Button>
      </div>
      {problem !== null && (
        <p className="notice notice-bad" role="alert">
          {problem}
        </p>
      )}
      {filters.length > 0 && (
        <ul className="tag-list" aria-label="Filters">
          {filters.map((filter) => (
            <li key={filter} className="tag">
              <span className="tag-value">{filter}</span>
              <button
                type="button"
                className="tag-remove"
                aria-label={`Remove filter ${filter}`}
                onClick={() => onChange(filters.filter((one) => one !== filter))}
              >
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Splits a partial filter into its key, its operator (may be empty), and the last of its comma-separated values. */
function splitDraft(draft: string): { key: string; operator: string; prefix: string } {
  const match = /^(!?)([^=!]*)(!?=)?(.*)$/s.exec(draft);
  const values = match?.[4] ?? "";
  // An escaped comma does not separate values.
  const prefix = /(?:^|[^\\],|^,)((?:[^,\\]|\\.)*)$/s.exec(values)?.[1] ?? values;
  return { key: match?.[2] ?? "", operator: match?.[3] ?? "", prefix };
}

function escapeValue(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll(",", "\\,");
}
