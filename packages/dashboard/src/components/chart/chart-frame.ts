/** Where the parts of a chart are: the axes around the area of the marks, and the place of a time and of a value in it. */
export interface ChartFrame {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** Width of one bucket, in pixels. */
  readonly slot: number;
  readonly x: (index: number) => number;
  readonly y: (value: number) => number;
}

export type ChartSize = "normal" | "large" | "strip";

const SIZES = {
  normal: { height: 190, left: 52, right: 4, top: 10, bottom: 24 },
  large: { height: 280, left: 52, right: 4, top: 10, bottom: 24 },
  // A histogram above a list: its largest value stands in the tooltip.
  strip: { height: 72, left: 0, right: 0, top: 4, bottom: 18 },
} as const;

export function chartFrame(size: ChartSize, width: number, buckets: number, max: number): ChartFrame {
  const margins = SIZES[size];
  const innerWidth = Math.max(0, width - margins.left - margins.right);
  const innerHeight = margins.height - margins.top - margins.bottom;
  const slot = buckets === 0 ? 0 : innerWidth / buckets;
  return {
    ...margins,
    width,
    slot,
    x: (index) => margins.left + slot * index,
    y: (value) => margins.top + innerHeight * (1 - value / max),
  };
}

/** The bucket below a horizontal place; null outside of the marks. */
export function bucketBelow({ left, slot }: ChartFrame, x: number, buckets: number): number | null {
  const index = Math.floor((x - left) / slot);
  return index >= 0 && index < buckets ? index : null;
}
