import { durationOf } from "../../../format/number.ts";
import type { Call } from "./call.ts";
import { waterfallOf } from "./waterfall.ts";

/** Where the time of a call went: each attempt with its outcome, and the answer from its first to its last byte. */
export function CallWaterfall({ call }: { readonly call: Call }) {
  const bars = waterfallOf(call);
  const end = Math.max(call.duration, ...bars.map(({ to }) => to));
  const format = durationOf(bars.map(({ from, to }) => to - from));
  const percent = (ms: number) => `${end === 0 ? 0 : (100 * ms) / end}%`;
  return (
    <section className="panel" aria-labelledby="waterfall-title">
      <h2 id="waterfall-title">Timeline</h2>
      <ol className="waterfall">
        {bars.map(({ title, note, tone, from, to }) => (
          <li key={`${title} ${from}`}>
            <span className="waterfall-title" title={title}>
              {title}
            </span>
            <span className="waterfall-track" aria-hidden="true">
              <span
                className={`waterfall-bar waterfall-${tone}`}
                style={{ left: percent(from), width: percent(to - from) }}
              />
            </span>
            <span className={`waterfall-note ${tone === "bad" ? "error-text" : "muted"}`}>{note}</span>
            <span className="waterfall-time">{format(to - from)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
