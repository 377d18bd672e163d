/** The period of a budget or limit, as a form edits it. */
import type { SpendRule } from "@signalbox/client";
import { spanText } from "../../format/time.ts";

export type Window = NonNullable<SpendRule["window"]> | null;

export interface Period {
  readonly unit: "seconds" | "day" | "week" | "month" | "credit";
  readonly seconds: string;
  readonly isSliding: boolean;
  /** Of calendar periods; empty for UTC. */
  readonly timezone: string;
}

export const MONTHLY: Period = { unit: "month", seconds: "3600", isSliding: false, timezone: "" };

export interface PeriodMembers {
  readonly window: Window;
  readonly isSliding: boolean;
  readonly timezone: string | undefined;
}

export function toPeriod({ window, isSliding, timezone }: PeriodMembers): Period {
  const base = { ...MONTHLY, isSliding, timezone: timezone === "UTC" ? "" : (timezone ?? "") };
  if (window === null) return { ...base, unit: "credit" };
  return typeof window === "number"
    ? { ...base, unit: "seconds", seconds: String(window) }
    : { ...base, unit: window };
}

export function fromPeriod({ unit, seconds, isSliding, timezone }: Period): PeriodMembers {
  if (unit === "credit") return { window: null, isSliding: false, timezone: undefined };
  if (unit === "seconds") return { window: Number(seconds), isSliding, timezone: undefined };
  return { window: unit, isSliding: false, timezone: timezone.trim() === "" ? undefined : timezone.trim() };
}

/** "per day", "per 1 h", "in total". */
export function windowTitle(window: Window | undefined): string {
  if (window === null) return "in total";
  if (window === undefined) return "";
  return `per ${typeof window === "number" ? spanText(window) : window}`;
}

/** The window of a limit in the words of the service, such as `per 2592000 s (fixed)`, with a larger unit. */
export function windowText(window: string): string {
  return window.replace(/\b(\d+) s\b/, (_, seconds: string) => spanText(Number(seconds)));
}
