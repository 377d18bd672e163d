/** An axis of counts reaches at least this far: a single error must not fill the chart. */
export const LEAST_WHOLE = 4;

/** About five round axis values from zero to at least `max`; integers if `isWhole`. */
export function niceTicks(highest: number, isWhole: boolean): number[] {
  const max = isWhole ? Math.max(LEAST_WHOLE, highest) : highest;
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

/**
 * The places of an axis that get a label: where the text changes, such as at midnight if the texts are days, and with `labelWidth` between
 * them. `slot` is the width of one place.
 */
export function labelPlaces(texts: readonly string[], slot: number, labelWidth: number): number[] {
  const places: number[] = [];
  let free = -Infinity;
  for (const [place, text] of texts.entries()) {
    if (text === texts[place - 1] || place * slot < free) continue;
    places.push(place);
    free = place * slot + labelWidth;
  }
  return places;
}
