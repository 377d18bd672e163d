/** The `agents` section of the configuration file. */
import { z } from "zod";
import { accountKey } from "./account-key.ts";

const kibibytes = (count: number) => count * 1024;

/**
 * `"edit"` or true allows everything, `"read"` makes a connection read-only, false refuses the request. An object also passes on who the
 * caller is: `props` to the agent's hooks, `headers` in place of the caller's own.
 */
type Authorize = (request: Request) => AuthorizeAnswer | Promise<AuthorizeAnswer>;
type AuthorizeAnswer =
  | "read"
  | "edit"
  | boolean
  | {
      readonly level: "read" | "edit";
      readonly props?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** The value of an `Origin` header: scheme and host, without a path. `null` is refused, because any page can have that origin. */
function isOrigin(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s]+$/.test(text)) return false;
  return !/^https?:/.test(text) || (URL.canParse(text) && new URL(text).origin === text);
}

export const agentsConfig = z
  .strictObject({
    /** Access to instances: `token` (requires agents.read or agents.edit) or `public`. Default `token`. */
    access: z.enum(["token", "public"]).default("token"),
    /** Called for a request to an agent without a valid token. */
    authorize: z
      .custom<Authorize>((value) => typeof value === "function", { error: "expected a function" })
      .optional(),
    /**
     * Pages of other origins that may use the agents: `true` for all of them, without cookies, or a list of origins, with cookies. Default
     * `false`.
     */
    cors: z
      .union([
        z.boolean(),
        z.array(
          z.string().refine(isOrigin, {
            error: 'expected an origin such as "https://app.example.com" (true allows every origin)',
          }),
        ),
      ])
      .default(false),
    /**
     * Number of instances that requests without a token may create per minute if access is public; further ones are refused with 503. Each
     * instance is a permanent file of at least 8 KiB: 60 per minute are about 0.7 GB a day. Default: no limit.
     */
    newInstancesPerMinute: z.int().min(1).nullable().default(null),
    /** Files that export agent classes, relative to the working folder. */
    modules: z.array(z.string().min(1)).default([]),
    /**
     * Time limit of a turn; 0 for none. Default 0; then only deliveries of webhooks, `onConnect`, `onClose` and `onStart` have a limit, which
     * is 30 s.
     */
    turnTimeoutMs: z.int().min(0).max(3_600_000).default(0),
    /** Maximum number of events that wait for one instance; further ones are refused with 503. Default 1,000. */
    maxWaitingTurns: z.int().min(1).default(1000),
    /** Time that an idle instance stays in memory. Default 30 s. */
    idleTimeoutMs: z.int().min(50).default(30_000),
    /** Maximum number of instances in memory; each has up to four open files. Default 1,000. */
    maxActiveInstances: z.int().min(1).default(1000),
    /**
     * How instances' commits become durable: `journal` writes the commits of all instances to one journal with one sync, `plain` syncs a file for
     * each instance. Either opens the data of the other. Default `journal`.
     */
    store: z.enum(["journal", "plain"]).default("journal"),
    /**
     * Size at which the journal of all instances' commits starts a new file; up to four files exist. Larger files need fewer disk writes,
     * smaller files shorten recovery after a crash. Default 256 MiB.
     */
    journalFileBytes: z
      .int()
      .min(kibibytes(64))
      .default(kibibytes(256 * 1024)),
    /** Maximum size of an instance's state. Default 1 MiB. */
    maxStateBytes: z.int().min(kibibytes(1)).default(kibibytes(1024)),
    /** Maximum size of a request body. Default 10 MiB. */
    maxBodyBytes: z
      .int()
      .min(kibibytes(1))
      .default(kibibytes(10 * 1024)),
    /** Maximum size of a WebSocket message. Default 1 MiB. */
    maxMessageBytes: z.int().min(kibibytes(1)).default(kibibytes(1024)),
    /** Maximum number of bytes buffered for a slow WebSocket client; above it the connection is closed. Default 4 MiB. */
    maxBufferedBytes: z
      .int()
      .min(kibibytes(1))
      .default(kibibytes(4 * 1024)),
    /** Interval of WebSocket pings; a connection without a pong before the next ping is closed. Default 30 s. */
    pingIntervalMs: z.int().min(50).default(30_000),
    /** Instances that receive all tag changes of their account as events. `agent` is the kebab-case name of the class. Default: none. */
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
