import { Button } from "../../components/button.tsx";
import { Combobox } from "../../components/combobox.tsx";
import type { TagEdit, Tags } from "./tagged-resource.ts";
import { useSuggestions } from "./use-suggestions.ts";

export interface EditRow {
  readonly row: number;
  readonly key: string;
  readonly value: string;
  readonly isRemoval: boolean;
}

let lastRow = 0;

export function emptyRow(): EditRow {
  lastRow += 1;
  return { row: lastRow, key: "", value: "", isRemoval: false };
}

/** Converts rows to an edit. If `current` is given, tags that would not change are omitted. */
export function toEdit(rows: readonly EditRow[], current: Tags | undefined): TagEdit {
  const edit: Record<string, string | null> = {};
  for (const { key, value, isRemoval } of rows) {
    if (key === "") continue;
    if (isRemoval) {
      if (current === undefined || current[key] !== undefined) edit[key] = null;
    } else if (current?.[key] !== value) edit[key] = value;
  }
  return edit;
}

interface TagEditRowsProps {
  readonly rows: readonly EditRow[];
  readonly onChange: (rows: readonly EditRow[]) => void;
}

export function TagEditRows({ rows, onChange }: TagEditRowsProps) {
  const replace = (changed: EditRow) =>
    onChange(rows.map((row) => (row.row === changed.row ? changed : row)));
  return (
    <div className="stack">
      {rows.map((row, i) => (
        <EditRowFields key={row.row} row={row} number={i + 1} onChange={replace} />
      ))}
      <div>
        <Button size="small" onClick={() => onChange([...rows, emptyRow()])}>
          Add tag
        </Button>
      </div>
    </div>
  );
}

interface EditRowFieldsProps {
  readonly row: EditRow;
  readonly number: number;
  readonly onChange: (row: EditRow) => void;
}

function EditRowFields({ row, number, onChange }: EditRowFieldsProps) {
  const keys = useSuggestions(null, row.key);
  const values = useSuggestions(row.key, row.isRemoval ? null : row.value);
  return (
    <div className="edit-row" role="group" aria-label={`Tag ${number}`}>
      <Combobox
        label="Key"
        value={row.key}
        onChange={(key) => onChange({ ...row, key })}
        options={keys.filter(({ text }) => text !== row.key).map(({ text }) => ({ text }))}
        onPick={(key) => onChange({ ...row, key })}
      />
      {row.isRemoval ? (
        <p className="field">
          <span className="field-label">Value</span>
          <span className="removal">Will be removed</span>
        </p>
      ) : (
        <Combobox
          label="Value"
          value={row.value}
          onChange={(value) => onChange({ ...row, value })}
          options={values.filter(({ text }) => text !== row.value).map(({ text }) => ({ text }))}
          onPick={(value) => onChange({ ...row, value })}
        />
      )}
      <label className="check">
        <input
          type="checkbox"
          checked={row.isRemoval}
          onChange={({ target }) => onChange({ ...row, isRemoval: target.checked })}
        />
        <span>Remove</span>
      </label>
    </div>
  );
}
