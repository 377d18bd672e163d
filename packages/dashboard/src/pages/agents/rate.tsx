import { Sparkline } from "../../components/chart/sparkline.tsx";
import { count } from "../../format/number.ts";

interface RateProps {
  /** Turns in each step of the last hour, the current one last. */
  readonly turns: readonly number[];
  /** The length of a step. */
  readonly minutes: number;
}

/** Turns per minute over the last hour: the last whole step as a number, and all of them as a line. */
export function Rate({ turns, minutes }: RateProps) {
  if (turns.every((n) => n === 0)) return <span className="muted">–</span>;
  const last = (turns.at(-2) ?? 0) / minutes;
  const sum = turns.reduce((all, n) => all + n, 0);
  return (
    <span className="rate" title={`${count(sum)} turns in the last hour`}>
      <Sparkline values={turns} />
      <span>{last > 0 && last < 10 ? Number(last.toFixed(1)) : count(last)}</span>
    </span>
  );
}
