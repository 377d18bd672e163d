import type { ResponseHead } from "../../engines/relay/index.ts";

/** The time that the provider names in `retry-after-ms` or `retry-after`; null if it names none. */
export function retryAfterOf({ rawHeaders }: ResponseHead): number | null {
  let fromSeconds: number | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase();
    if (name !== "retry-after" && name !== "retry-after-ms") continue;
    const text = (rawHeaders[i + 1] ?? "").trim();
    if (name === "retry-after-ms") {
      if (/^\d{1,12}(?:\.\d+)?$/.test(text)) return Number(text);
    } else if (/^\d{1,9}(?:\.\d+)?$/.test(text)) {
      fromSeconds = Number(text) * 1000;
    } else {
      const time = Date.parse(text);
      if (Number.isFinite(time)) fromSeconds = Math.max(time - Date.now(), 0);
    }
  }
  return fromSeconds;
}
