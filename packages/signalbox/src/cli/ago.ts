/** Times relative to now, as people read them in a list: "3 min ago", "in 2 h". */
const UNITS: readonly (readonly [name: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

export function agoOf(time: number, now: number): string {
  const distance = Math.abs(now - time);
  const [name, ms] = UNITS.find(([, size]) => distance >= size) ?? ["s", 1000];
  const amount = `${Math.floor(distance / ms)} ${name}`;
  return time > now ? `in ${amount}` : `${amount} ago`;
}

/** A length of time in its largest whole unit: "30 d", "90 s". */
export function spanOf(seconds: number): string {
  const [name, ms] = UNITS.find(([, size]) => (seconds * 1000) % size === 0) ?? ["s", 1000];
  return `${(seconds * 1000) / ms} ${name}`;
}
