/** The values of one line, or of one color in a stacked bar chart. */
export interface Series {
  readonly name: string;
  /** One value for each time; null where there is no value. */
  readonly values: readonly (number | null)[];
  /** A color with a meaning, such as red for errors. Default: the color of the name, which is the same on every page. */
  readonly tone?: "good" | "warn" | "bad" | "accent";
}

export type ChartKind = "bars" | "lines";
