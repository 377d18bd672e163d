/** The value of a Prometheus metric, summed over its labels; NaN if the server does not report it. */
export async function readMetric({ url }: { readonly url: string }, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text
    .split("\n")
    .filter((line) => line.startsWith(`${series} `) || line.startsWith(`${series}{`));
  if (lines.length === 0) return Number.NaN;
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
