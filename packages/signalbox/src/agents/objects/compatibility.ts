/**
 * Flags of the originals' runtime that change what a program sees here. Each is on from a date, which the wrangler file of a program may be older than;
 * the file can also set a flag by its name. Other flags concern what this server has in one form only.
 */
import { currentFlags } from "./worker-binding.ts";

interface Flag {
  readonly since: string;
  /** The name that sets it to false. */
  readonly off: string;
}

const FLAGS = {
  /** Errors carry their own properties through calls. */
  enhanced_error_serialization: { since: "2026-04-21", off: "legacy_error_serialization" },
  /** `deleteAll()` also deletes the alarm. */
  delete_all_deletes_alarm: { since: "2026-02-24", off: "delete_all_preserves_alarm" },
  /** Binary messages of WebSockets are Blobs, unless the program sets `binaryType`. */
  websocket_standard_binary_type: { since: "2026-03-17", off: "no_websocket_standard_binary_type" },
} satisfies Readonly<Record<string, Flag>>;

export type FlagName = keyof typeof FLAGS;

/** A program without a date is a new one: all flags are on. */
export function readFlags(date: string | undefined, names: readonly string[]): Record<string, boolean> {
  const flags: Record<string, boolean> = {};
  for (const [name, { since, off }] of Object.entries(FLAGS))
    flags[name] = names.includes(name) || (!names.includes(off) && (date === undefined || date >= since));
  for (const name of names) if (!Object.values(FLAGS).some(({ off }) => off === name)) flags[name] = true;
  return flags;
}

export function hasFlag(name: FlagName): boolean {
  return currentFlags()?.[name] ?? true;
}
