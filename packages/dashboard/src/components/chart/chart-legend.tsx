import { colorClass } from "./series-color.ts";
import type { Series } from "./series.ts";

interface ChartLegendProps {
  readonly series: readonly Series[];
  /** The only series that is shown; null if all are. */
  readonly only: string | null;
  readonly onOnly: (name: string | null) => void;
}

/** The names of the series. A click shows one of them alone, in all charts of the page that have it; a second click shows all again. */
export function ChartLegend({ series, only, onOnly }: ChartLegendProps) {
  if (series.length < 2)
    return (
      <ul className="legend">
        {series.map((one) => (
          <li key={one.name}>
            <span className={`swatch ${colorClass(one)}`} />
            {one.name}
          </li>
        ))}
      </ul>
    );
  return (
    <ul className="legend">
      {series.map((one) => (
        <li key={one.name}>
          <button
            type="button"
            className={`legend-entry ${only !== null && only !== one.name ? "legend-entry-off" : ""}`}
            aria-pressed={only === one.name}
            title={only === one.name ? "Show all" : `Show ${one.name} only`}
            onClick={() => onOnly(only === one.name ? null : one.name)}
          >
            <span className={`swatch ${colorClass(one)}`} />
            {one.name}
          </button>
        </li>
      ))}
    </ul>
  );
}
