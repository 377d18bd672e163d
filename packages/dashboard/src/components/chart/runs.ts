/** Splits the values of a line into runs of neighbouring times that have values: a line must not cross a time without one. */
export function runsOf(
  values: readonly (number | null)[],
): { readonly index: number; readonly value: number }[][] {
  const runs: { index: number; value: number }[][] = [];
  let run: { index: number; value: number }[] = [];
  for (const [index, value] of values.entries()) {
    if (value !== null) {
      if (run.length === 0) runs.push(run);
      run.push({ index, value });
    } else run = [];
  }
  return runs;
}
