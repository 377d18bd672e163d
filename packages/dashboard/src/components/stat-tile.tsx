import type { ReactNode } from "react";
import { Link } from "../routing/link.tsx";
import { Sparkline } from "./chart/sparkline.tsx";

interface StatTileProps {
  readonly label: string;
  /** The figure, with its unit. */
  readonly value: ReactNode;
  /** A second figure below, such as a share. */
  readonly note?: ReactNode;
  /** The figure now and in the period before. */
  readonly change?: {
    readonly now: number | null;
    readonly before: number | null;
    readonly goodWhen?: "higher" | "lower";
  };
  readonly spark?: readonly (number | null)[];
  readonly tone?: "bad" | "warn";
  /** Page with the details. */
  readonly to?: string;
  /** The tile is a button: of several, the pressed one is shown in a chart below. */
  readonly onPress?: () => void;
  readonly isPressed?: boolean;
}

/** A row of tiles. */
export function StatTiles({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <section className="stat-tiles" aria-label={label}>
      {children}
    </section>
  );
}

/** One figure: the label small, the figure large, and how it changed against the period before. */
export function StatTile(props: StatTileProps) {
  const { label, value, note, change, spark, tone, to, onPress, isPressed } = props;
  const className = `stat-tile ${tone === undefined ? "" : `stat-tile-${tone}`}`;
  const content = (
    <>
      <span className="stat-label">{to === undefined ? label : <Link to={to}>{label}</Link>}</span>
      <span className="stat-value">{value}</span>
      {(note !== undefined || change !== undefined) && (
        <span className="stat-note">
          {note}
          {change !== undefined && <Change {...change} />}
        </span>
      )}
      {spark !== undefined && <Sparkline values={spark} />}
    </>
  );
  if (onPress === undefined) return <div className={className}>{content}</div>;
  return (
    <button
      type="button"
      className={`${className} stat-tile-button`}
      aria-pressed={isPressed}
      onClick={onPress}
    >
      {content}
    </button>
  );
}

function Change({ now, before, goodWhen }: NonNullable<StatTileProps["change"]>) {
  const text = changeText(now, before);
  if (text === null) return null;
  if (text === "0%") return <span>unchanged</span>;
  const isHigher = (now ?? 0) > (before ?? 0);
  const tone = goodWhen === undefined ? "same" : isHigher === (goodWhen === "higher") ? "good" : "bad";
  return (
    <span className={`stat-change stat-change-${tone}`} title="Compared with the period before">
      <span aria-hidden="true">{isHigher ? "▲ " : "▼ "}</span>
      <span className="visually-hidden">{isHigher ? "up " : "down "}</span>
      {text}
      <span className="visually-hidden"> compared with the period before</span>
    </span>
  );
}

/** The difference in percent without its sign; null if there is nothing to compare with. */
export function changeText(now: number | null, before: number | null): string | null {
  if (now === null || before === null || before === 0) return null;
  const percent = Math.abs(((now - before) / before) * 100);
  // Against a period with hardly any calls, the exact factor says nothing.
  if (percent >= 10_000) return ">100×";
  if (percent >= 1000) return `${Math.round(now / before)}×`;
  return `${percent < 10 && percent >= 0.1 ? percent.toFixed(1) : Math.round(percent)}%`;
}
