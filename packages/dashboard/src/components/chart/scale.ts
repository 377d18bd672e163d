/** About five round axis values from zero to at least `max`; integers if `isWhole`. */
export function niceTicks(max: number, isWhole: boolean): number[] {
  if (max <= 0) return [0, 1];
  const rough = isWhole ? Math.max(1, max / 4) : max / 4;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step =
    ((isWhole && magnitude === 1 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10]).find(
      (factor) => factor * magnitude >= rough,
    ) ?? 10) * magnitude;
  const ticks: number[] = [];
  for (let i = 0; i * step < max + step; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Returns n such that every n-th of `count` labels fits into `width` without overlap. */
export function labelEvery(count: number, width: number, labelWidth: number): number {
  const fitting = Math.max(1, Math.floor(width / labelWidth));
  return Math.max(1, Math.ceil(count / fitting));
}
