import { Sparkline } from "../../components/chart/sparkline.tsx";
import { count } from "../../format/number.ts";

/** Turns in each step of the last hour as a line, and all of them as a number. */
export function Rate({ turns }: { readonly turns: readonly number[] }) {
  const sum = turns.reduce((all, n) => all + n, 0);
  if (sum === 0) return <span className="muted">–</span>;
  return (
    <span className="rate">
      <Sparkline values={turns} />
      <span>{count(sum)}</span>
    </span>
  );
}
