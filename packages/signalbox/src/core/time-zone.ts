/** Time zones by name, and the format that tells the parts of a moment in one. */
import { LRUCache } from "lru-cache";

export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

/** Creating a format takes 50 µs. Bounded, because users choose the names. */
const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 100 });

export function formatOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(timeZone, format);
  }
  return format;
}
