/**
 * The configuration file's shape and defaults. Each area's keys are one object here; the comment of a key is its documentation and
 * names its unit and default.
 */
import { z } from "zod";
import { agentsConfig } from "./agents-config.ts";
import { outgoingKeys, webhookKeys } from "./webhook-keys.ts";
import { tagKeys } from "./tag-keys.ts";
import { callLogKeys, priceKeys } from "./call-log-keys.ts";
import { dashboardKeys } from "./dashboard-keys.ts";
import { gatewayKeys, httpUrl, providerKeys } from "./gateway-keys.ts";

const megabytes = (count: number) => count * 1024 * 1024;

const listener = z
  .strictObject({
    /**
     * The address clients reach this server at, e.g. `https://ai.example.com`; shown in addresses and commands to copy. Default: the
     * request's own host, with the scheme a proxy names in `x-forwarded-proto`.
     */
    publicUrl: httpUrl.optional(),
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

const gateway = z
  .strictObject({
    ...gatewayKeys,
    logs: callLogKeys,
    prices: priceKeys,
  })
  .prefault({});

export const configFile = z.strictObject({
  listener,
  agents: agentsConfig,
  webhooks: webhookKeys,
  outgoing: outgoingKeys,
  dashboard: dashboardKeys,
  gateway,
  providers: providerKeys,
  tags: tagKeys,
});

export type ConfigFile = z.output<typeof configFile>;
export type ConfigFileInput = z.input<typeof configFile>;

/** Gives a `signalbox.config.ts` its types; returns its argument. */
export function defineConfig(config: ConfigFileInput): ConfigFileInput {
  return config;
}
