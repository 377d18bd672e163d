/**
 * The configuration file's shape and defaults. Each area's keys are one object here; the comment of a key is its documentation and
 * names its unit and default.
 */
import { z } from "zod";

const megabytes = (count: number) => count * 1024 * 1024;

const resourceTypeName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/, "expected lower-case letters, digits and _");

const listener = z
  .strictObject({
    /** Bytes of a request's header block. Default 32 KiB. */
    maxHeaderBytes: z
      .int()
      .min(1024)
      .max(megabytes(1))
      .default(32 * 1024),
    /** Time for a request's headers to arrive. Default 10 s. */
    headerTimeoutMs: z.int().min(100).default(10_000),
    /** Time for a whole request, body included, to arrive. Default 120 s. */
    bodyTimeoutMs: z.int().min(100).default(120_000),
    /** How long an idle keep-alive connection stays open. Default 65 s, above the 60 s of common load balancers. */
    idleTimeoutMs: z.int().min(100).default(65_000),
    /** Open connections at once. Default 10,000. */
    maxConnections: z.int().min(1).default(10_000),
    /** Bytes of a management request's body. Default 1 MiB. */
    maxBodyBytes: z.int().min(1024).default(megabytes(1)),
    /** How long running requests may take to finish after SIGTERM. Default 10 s. */
    gracePeriodMs: z.int().min(0).default(10_000),
  })
  .prefault({});

const tags = z
  .strictObject({
    /** Status of reading a resource that was never tagged: 500 as the contract has it, 404, or 200 with an empty set. Default 500. */
    missing: z
      .enum(["500", "404", "200"])
      .or(z.literal([500, 404, 200]))
      .transform(Number)
      .default(500),
    /** Resource types beside the built-in ones: a name, or `{name, scope}` with scope `account` (default) or `zone`. Default none. */
    resourceTypes: z
      .array(
        z.union([
          resourceTypeName,
          z.strictObject({ name: resourceTypeName, scope: z.enum(["account", "zone"]).default("account") }),
        ]),
      )
      .default([]),
    /** Tags one resource may carry. Default 1,000. */
    maxTagsPerResource: z.int().min(1).max(10_000).default(1000),
    /** How long changes are kept for history and feed. Default 90 days. */
    historyDays: z.number().positive().max(36_500).default(90),
    /** How many changes an account keeps for history and feed. Default 250,000. */
    historyChanges: z.int().min(100).default(250_000),
  })
  .prefault({});

export const configFile = z.strictObject({
  listener,
  tags,
});

export type ConfigFile = z.output<typeof configFile>;
export type ConfigFileInput = z.input<typeof configFile>;

/** Gives a `signalbox.config.ts` its types; returns its argument. */
export function defineConfig(config: ConfigFileInput): ConfigFileInput {
  return config;
}
