import type { ReactNode } from "react";

type Column<Row> = ColumnLayout & (CellColumn<Row> | AmountColumn<Row>);

interface CellColumn<Row> {
  readonly cell: (row: Row) => ReactNode;
}

/** Amounts that are compared with each other: all of the column have the same unit and the same digits. */
interface AmountColumn<Row> {
  readonly amount: (row: Row) => number | null | undefined;
  /** `moneyOf` or `durationOf`. */
  readonly formatOf: (
    values: readonly (number | null | undefined)[],
  ) => (value: number | null | undefined) => string;
}

interface ColumnLayout {
  readonly title: string;
  readonly align?: "end";
  /** Hidden on narrow screens. */
  readonly isMinor?: boolean;
  /** Left out in a window of middle width, where the other columns need the room. */
  readonly isExtra?: boolean;
  /** Buttons of the row: they stay in view when the table scrolls sideways. */
  readonly isAction?: boolean;
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/** A table that scrolls horizontally where it is too wide; a shadow at the edge shows that there is more. On a phone, each row is a card. */
export function Table<Row>({ label, columns, rows, keyOf }: TableProps<Row>) {
  const cells = columns.map((column) => cellOf(column, rows));
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard
    <div className="table-scroll table-cards" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" className={classOf(column)}>
                {column.isAction === true ? (
                  <span className="visually-hidden">{column.title}</span>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column, i) => (
                <td key={column.title} className={classOf(column)} data-title={column.title}>
                  {cells[i]?.(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function cellOf<Row>(column: Column<Row>, rows: readonly Row[]): (row: Row) => ReactNode {
  if ("cell" in column) return column.cell;
  const format = column.formatOf(rows.map(column.amount));
  return (row) => format(column.amount(row));
}

function classOf<Row>(column: Column<Row>): string {
  const { align, isMinor, isExtra, isAction } = column;
  const classes = [
    (align === "end" || "amount" in column) && "align-end",
    isMinor === true && "minor",
    isExtra === true && "extra",
    isAction === true && "cell-actions",
  ];
  return classes.filter(Boolean).join(" ");
}
