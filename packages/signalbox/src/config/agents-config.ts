/** Keys of the agents' area. */
import { z } from "zod";
import { accountKey } from "./account-key.ts";

const kibibytes = (count: number) => count * 1024;

/** `"edit"` or true lets everything through, `"read"` makes a connection read-only, false refuses. */
type Authorize = (request: Request) => "read" | "edit" | boolean | Promise<"read" | "edit" | boolean>;

export const agentsConfig = z
  .strictObject({
    /** Who may reach instances: `token` (agents.read or agents.edit) or `public`. Default `token`. */
    access: z.enum(["token", "public"]).default("token"),
    /** Asked when a request to an agent carries no valid token. */
    authorize: z
      .custom<Authorize>((value) => typeof value === "function", { error: "expected a function" })
      .optional(),
    /**
     * Instances that callers without a token may create in a minute, by naming them, where access is public; more are refused with 503. Each
     * is a file of 8 KiB or more for good: at 60, a flood of names takes some 0.7 GB a day. Default: no bound.
     */
    newInstancesPerMinute: z.int().min(1).nullable().default(null),
    /** Files that export agent classes, relative to the working folder. */
    modules: z.array(z.string().min(1)).default([]),
    /** How long a turn may take. Default 30 s. */
    turnTimeoutMs: z.int().min(10).max(3_600_000).default(30_000),
    /** Events that may wait for one instance; more are refused with 503. Default 1,000. */
    maxWaitingTurns: z.int().min(1).default(1000),
    /** How long an instance without events stays in memory. Default 30 s. */
    idleTimeoutMs: z.int().min(50).default(30_000),
    /** Instances in memory at once; each holds up to four files open. Default 1,000. */
    maxActiveInstances: z.int().min(1).default(1000),
    /**
     * How instances' commits become durable: `journal` writes the commits of all instances to one journal with one sync, `plain` syncs a file for
     * each instance. Either opens the data of the other. Default `journal`.
     */
    store: z.enum(["journal", "plain"]).default("journal"),
    /**
     * Size at which the journal of all instances' commits begins another file; up to four exist. Larger ones spare the disk work, smaller
     * ones are read sooner after a crash. Default 256 MiB.
     */
    journalFileBytes: z
      .int()
      .min(kibibytes(64))
      .default(kibibytes(256 * 1024)),
    /** Bytes of an instance's state. Default 1 MiB. */
    maxStateBytes: z.int().min(kibibytes(1)).default(kibibytes(1024)),
    /** Bytes of a request's body. Default 10 MiB. */
    maxBodyBytes: z
      .int()
      .min(kibibytes(1))
      .default(kibibytes(10 * 1024)),
    /** Bytes of a WebSocket message. Default 1 MiB. */
    maxMessageBytes: z.int().min(kibibytes(1)).default(kibibytes(1024)),
    /** Bytes that may wait for a slow WebSocket reader before it is dropped. Default 4 MiB. */
    maxBufferedBytes: z
      .int()
      .min(kibibytes(1))
      .default(kibibytes(4 * 1024)),
    /** How often connections are pinged; one that does not answer until the next ping is cut. Default 30 s. */
    pingIntervalMs: z.int().min(50).default(30_000),
    /** Instances that get every change of their account's tags as an event. `agent` is the class's kebab-case name. Default none. */
    tagChanges: z
      .array(
        z.strictObject({
          agent: z.string().min(1),
          name: z.string().min(1).default("default"),
          account: accountKey,
        }),
      )
      .default([]),
  })
  .prefault({});
