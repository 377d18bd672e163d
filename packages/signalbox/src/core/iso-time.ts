/** Milliseconds since the epoch as APIs show them. */
export function isoTime(time: number): string {
  return new Date(time).toISOString();
}
