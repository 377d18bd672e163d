import type { ReactNode } from "react";
import { Button } from "./button.tsx";

interface EditRowsProps<Row> {
  readonly legend: string;
  readonly hint?: ReactNode;
  readonly rows: readonly Row[];
  /** The row that the add button appends. */
  readonly blank: Row;
  /** Names one row for its remove button, e.g. `budget`. */
  readonly noun: string;
  readonly max?: number;
  readonly onChange: (rows: readonly Row[]) => void;
  readonly children: (row: Row, change: (part: Partial<Row>) => void) => ReactNode;
}

/** A list of small forms with buttons that add and remove one. */
export function EditRows<Row extends object>(props: EditRowsProps<Row>) {
  const { legend, hint, rows, blank, noun, max = Infinity, onChange, children } = props;
  const replace = (at: number, part: Partial<Row>) =>
    onChange(rows.map((row, i) => (i === at ? { ...row, ...part } : row)));
  return (
    <fieldset className="fieldset">
      <legend className="field-label">{legend}</legend>
      {hint !== undefined && <p className="muted small">{hint}</p>}
      <div className="edit-rows">
        {rows.map((row, i) => (
          <div className="edit-row" role="group" aria-label={`${noun} ${i + 1}`} key={i}>
            {children(row, (part) => replace(i, part))}
            <Button size="small" onClick={() => onChange(rows.toSpliced(i, 1))}>
              Remove
              <span className="visually-hidden">
                {" "}
                {noun} {i + 1}
              </span>
            </Button>
          </div>
        ))}
      </div>
      {rows.length < max && (
        <Button size="small" onClick={() => onChange([...rows, blank])}>
          Add {noun}
        </Button>
      )}
    </fieldset>
  );
}
