/** Round numbers for an axis that reaches at least `max`: at most five, always with zero. */
export function niceTicks(max: number): number[] {
  if (max <= 0) return [0, 1];
  const rough = max / 4;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * magnitude >= rough) ?? 10) * magnitude;
  const ticks: number[] = [];
  for (let i = 0; i * step < max + step; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Which of `count` labels to write so that they do not touch; always the first. */
export function labelEvery(count: number, width: number, labelWidth: number): number {
  const fitting = Math.max(1, Math.floor(width / labelWidth));
  return Math.max(1, Math.ceil(count / fitting));
}
