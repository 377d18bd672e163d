import { runsOf } from "./runs.ts";

const WIDTH = 120;
const HEIGHT = 28;

/** A small line without axes; the figure beside it is its text. Times without a value are gaps. */
export function Sparkline({ values }: { readonly values: readonly (number | null)[] }) {
  const max = Math.max(0, ...values.map((value) => value ?? 0));
  const step = values.length < 2 ? 0 : WIDTH / (values.length - 1);
  const y = (value: number) => (max === 0 ? HEIGHT - 2 : HEIGHT - 2 - (value / max) * (HEIGHT - 5));
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {runsOf(values).map((run) =>
        run.length === 1 ? (
          run.map(({ index, value }) => (
            <line key={index} x1={index * step - 1.5} x2={index * step + 1.5} y1={y(value)} y2={y(value)} />
          ))
        ) : (
          <polyline
            key={run[0]?.index}
            points={run.map(({ index, value }) => `${index * step},${y(value)}`).join(" ")}
          />
        ),
      )}
    </svg>
  );
}
