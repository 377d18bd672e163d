import type { ChartFrame } from "./chart-frame.ts";
import { ChartTip } from "./chart-tip.tsx";
import type { Series } from "./series.ts";
import type { BucketRange } from "./use-chart-pointer.ts";

interface CursorProps {
  readonly frame: ChartFrame;
  /** The bucket of the crosshair; null if there is none. */
  readonly index: number | null;
  readonly selection: BucketRange | null;
}

/** Behind the marks: the bucket below the pointer, in every chart of the group, and the buckets that a drag selects. */
export function ChartCursor({ frame, index, selection }: CursorProps) {
  const { slot, x, top, height, bottom } = frame;
  const innerHeight = height - top - bottom;
  return (
    <>
      {selection !== null && (
        <rect
          x={x(selection.first)}
          y={top}
          width={slot * (selection.last - selection.first + 1)}
          height={innerHeight}
          className="chart-selection"
        />
      )}
      {index !== null && (
        <rect x={x(index)} y={top} width={Math.max(slot, 2)} height={innerHeight} className="chart-cursor" />
      )}
    </>
  );
}

interface CursorTipProps {
  readonly frame: ChartFrame;
  readonly index: number;
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly time: string;
}

export function CursorTip({ frame, index, ...tip }: CursorTipProps) {
  return <ChartTip index={index} isLeft={frame.x(index) > frame.width / 2} {...tip} />;
}
