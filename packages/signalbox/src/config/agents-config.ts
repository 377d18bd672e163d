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

const program = {
  /** The file that exports the worker's handlers and classes, relative to the working folder. */
  entry: z.string().min(1),
  /** `wrangler.jsonc`, `.json` or `.toml` with the bindings. Default: the one beside the entry or in a folder above it. */
  wrangler: z.string().min(1).optional(),
  /** Variables in `env`, in addition to those of the wrangler file, `.dev.vars` and the environment. */
  vars: z.record(z.string(), z.json()).default({}),
  /** Folder with static files. Default: `assets.directory` of the wrangler file. */
  assets: z.string().min(1).optional(),
};

const worker = z.strictObject({
  ...program,
  /** `/webhooks` goes to the worker, and the server's own intake of webhooks is off. Default false. */
  webhooks: z.boolean().default(false),
  /**
   * For how many days objects can be restored to any time (`getBookmarkForTime`), 30 at most. 0: only the bookmarks and snapshots that programs ask for are stored, for 30 days.
   * A history needs about the space of the objects again, and of what they change. Default 0.
   */
  historyDays: z.int().min(0).max(30).default(0),
});

const ai = z
  .strictObject({
    /** Gateway of the calls. Default `default`. */
    gateway: z.string().min(1).default("default"),
    /** Account of the gateway. Default `default`. */
    account: accountKey,
    /** Names that the program uses, with `*` for any text, and the provider and model that run instead: `"@cf/meta/*": "openai/gpt-5-mini"`. Default: none. */
    models: z.record(z.string(), z.string().regex(/^[^/@]+\/.+$/, "expected <provider>/<model>")).default({}),
  })
  .prefault({});

export const agentsConfig = z
  .strictObject({
    /**
     * Access to instances: `token` (requires agents.read or agents.edit), `public`, or `worker`: the program of `agents.worker` decides who may
     * reach its objects, and agents of this package require a token. Default `token`.
     */
    access: z.enum(["token", "public", "worker"]).default("token"),
    /** A program written for Cloudflare Workers, which answers all paths that are not the server's own. Requires `access: "worker"`. Default: none. */
    worker: worker.optional(),
    /**
     * Further workers, which `agents.worker` and each other reach by service bindings, and by bindings to their objects and workflows. The name of each is in its wrangler
     * file. They answer no requests of the network. Default: none.
     */
    workers: z.array(z.strictObject(program)).default([]),
    /** Programs that workers load at run time (`worker_loaders` of the wrangler file). Each is a process. */
    loader: z
      .strictObject({
        /** Processes at the same time. Further programs wait for one that is idle. Default 16. */
        maxPrograms: z.int().min(1).max(1000).default(16),
        /** A process without a call ends after this time. Default 10 s. */
        idleMs: z.int().min(0).max(3_600_000).default(10_000),
        /** Limit of the heap of a program, and of its buffers beside it. Default 128. */
        memoryMb: z.int().min(16).max(16_384).default(128),
        /** Processor time that a program may use without a pause. `limits.cpuMs` of a program can only lower it. Default 30 s. */
        cpuMs: z.int().min(10).max(600_000).default(30_000),
      })
      .prefault({}),
    /** The models behind `env.AI` of the worker. */
    ai,
    /**
     * Variables of the process that agents and the worker see in `env`; `*` stands for any text. Secrets of the service itself are never among them. Default: all except those and
     * the credentials that the service uses, such as provider keys.
     */
    env: z
      .array(z.string().regex(/^[A-Za-z_*][A-Za-z0-9_*]*$/, "expected the name of an environment variable"))
      .optional(),
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
    /** Maximum number of instances in memory; each has up to four open files. Busy ones of one account are at most two thirds. Default 1,000. */
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
    /**
     * For a cluster: the PostgreSQL servers that hold the instances, as `postgres://` URLs or as names of environment variables that contain one. New
     * instances are spread over all of them, existing ones stay where they are. The first one must stay the first. Default: the server of
     * `DATABASE_URL`.
     */
    stores: z
      .array(
        z.string().regex(/^(postgres(ql)?:\/\/.+|[A-Z_][A-Z0-9_]*)$/, {
          error: "expected a postgres:// URL or the name of an environment variable that contains one",
        }),
      )
      .default([]),
    /** For a cluster: maximum size of the local copies of instances that are not in memory. Without a copy an instance is read from PostgreSQL. Default 1 GiB. */
    cacheBytes: z
      .int()
      .min(0)
      .default(kibibytes(1024 * 1024)),
    /**
     * Records what instances did for a day: their turns with duration, error, payload and state changes, some hundred of each instance. A class can exclude itself with the option `timeline: false`.
     * Default true.
     */
    timeline: z.boolean().default(true),
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
          /** The kebab-case name of the class. */
          agent: z.string().min(1),
          /** The instance. Default `default`. */
          name: z.string().min(1).default("default"),
          /** The account whose tags and instance are meant. Default `default`. */
          account: accountKey,
        }),
      )
      .default([]),
  })
  .prefault({});
