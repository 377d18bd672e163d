import type { ReactNode } from "react";

interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  readonly align?: "end";
  /** Hidden on narrow screens. */
  readonly isMinor?: boolean;
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}

/** A table that scrolls horizontally on narrow screens. */
export function Table<Row>({ label, columns, rows, keyOf }: TableProps<Row>) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard
    <div className="table-scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" className={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} className={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf<Row>({ align, isMinor }: Column<Row>): string {
  return `${align === "end" ? "align-end" : ""} ${isMinor === true ? "minor" : ""}`.trim();
}
