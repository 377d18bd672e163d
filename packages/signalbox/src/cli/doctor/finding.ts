/** One result of `signalbox doctor`. */
import type { Config } from "../../config/index.ts";

export interface Finding {
  /** What was checked: `settings`, `data folder`, … */
  readonly check: string;
  readonly status: "ok" | "warn" | "fail";
  readonly message: string;
  /** What to do; null if nothing needs to be done. */
  readonly remedy: string | null;
}

/** What the checks look at. */
export interface Patient {
  /** Null if the settings are invalid: the other checks use defaults. */
  readonly config: Config | null;
  readonly dataDir: string;
  /** Connection strings of the servers of PostgreSQL. Contain passwords. */
  readonly databaseUrls: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingFolder: string;
  readonly envFile: string | undefined;
}

export const ok = (check: string, message: string): Finding => ({
  check,
  status: "ok",
  message,
  remedy: null,
});
export const warn = (check: string, message: string, remedy: string): Finding => ({
  check,
  status: "warn",
  message,
  remedy,
});
export const fail = (check: string, message: string, remedy: string): Finding => ({
  check,
  status: "fail",
  message,
  remedy,
});

/** True for addresses and names that only this machine reaches. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?)$/.test(host);
}
