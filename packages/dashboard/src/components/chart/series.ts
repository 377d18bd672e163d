/** The values of one line, or of one color in a stacked bar chart. */
export interface Series {
  readonly name: string;
  /** One value for each time; null where there is no value. */
  readonly values: readonly (number | null)[];
}

export type ChartKind = "bars" | "lines";
