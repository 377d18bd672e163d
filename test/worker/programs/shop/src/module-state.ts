/** Imported by both workers: each has its own copy, with its own bindings. */
import { env } from "cloudflare:workers";

let calls = 0;

export function describe(): { who: unknown; calls: number } {
  calls += 1;
  return { who: (env as { WHO?: unknown }).WHO, calls };
}
