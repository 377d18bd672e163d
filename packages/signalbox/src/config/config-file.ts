/**
 * Schema and defaults of the configuration file. Each area has one section. The comment of a key is its documentation, with unit and
 * default.
 */
import { z } from "zod";
import { agentsConfig } from "./agents-config.ts";
import { auditKeys } from "./audit-keys.ts";
import { outgoingKeys, webhookKeys } from "./webhook-keys.ts";
import { tagKeys } from "./tag-keys.ts";
import { clusterKeys } from "./cluster-keys.ts";
import { callLogKeys, priceKeys, priceListKeys } from "./call-log-keys.ts";
import { dashboardKeys } from "./dashboard-keys.ts";
import { logPushKeys } from "./log-push-keys.ts";
import { isAddressRange } from "../engines/ip-address/index.ts";
import { tlsKeys } from "./tls-config.ts";
import { gatewayKeys, httpUrl, providerKeys } from "./gateway-keys.ts";

const megabytes = (count: number) => count * 1024 * 1024;

const listener = z
  .strictObject({
    /**
     * The public address of this server, e.g. `https://ai.example.com`, for generated URLs and commands. Default: the host of the request,
     * with the scheme of `x-forwarded-proto`.
     */
    publicUrl: httpUrl.optional(),
    /**
     * Addresses and CIDR ranges of reverse proxies. The last address in `X-Forwarded-For` that is none of them counts as the address of the
     * client: in the audit log, for the throttling of wrong credentials, and as `cf-connecting-ip` of a worker. Default: none, and the address
     * of the connection counts.
     */
    trustedProxies: z
      .array(z.string().refine(isAddressRange, "expected an address or a CIDR range"))
      .default([]),
    /** Certificate and key for HTTPS on all addresses. They are read again when they change, and on SIGHUP. Default: plain HTTP. */
    tls: tlsKeys.optional(),
    /**
     * `own`: plain requests are parsed by this server, and all others by Node.js, on the same connection. `node`: all by Node.js, which is slower.
     * Default `own`.
     */
    engine: z.enum(["own", "node"]).default("own"),
    /** Maximum size of request headers. Default 32 KiB. */
    maxHeaderBytes: z
      .int()
      .min(1024)
      .max(megabytes(1))
      .default(32 * 1024),
    /** Time limit for receiving request headers. Default 10 s. */
    headerTimeoutMs: z.int().min(100).default(10_000),
    /** Time limit for receiving a request with its body. Default 120 s. */
    bodyTimeoutMs: z.int().min(100).default(120_000),
    /** Time after which an idle keep-alive connection is closed. Default 65 s, longer than the 60 s of common load balancers. */
    idleTimeoutMs: z.int().min(100).default(65_000),
    /**
     * Maximum number of open connections. When nearly all are open, those that have waited longest for a request are closed. Calls, requests to agents and
     * WebSockets of one account take at most two thirds. Default 10,000.
     */
    maxConnections: z.int().min(1).default(10_000),
    /** Maximum body size of a management request. Default 1 MiB. */
    maxBodyBytes: z.int().min(1024).default(megabytes(1)),
    /** Time that running requests have to finish after SIGTERM. Default 10 s. */
    gracePeriodMs: z.int().min(0).default(10_000),
    /**
     * Time after SIGTERM during which `/readyz` reports that the node stops, while it still accepts connections: a load balancer notices it
     * and loses no call. Default 5 s for a node of a cluster, otherwise 0.
     */
    lameDuckMs: z.int().min(0).max(600_000).optional(),
  })
  .prefault({});

const gateway = z
  .strictObject({
    ...gatewayKeys,
    /** Stored calls and usage. */
    logs: callLogKeys,
    /** By provider slug, then by model (`*`: all other models of the provider), in US dollars per million tokens. Default: list prices. */
    prices: priceKeys,
    /** A newer list of prices than that of the release, read once a day. Default: off. */
    priceList: priceListKeys.optional(),
    /** Copies stored calls to S3-compatible storage. Default: off. */
    logPush: logPushKeys.optional(),
  })
  .prefault({});

export const configFile = z.strictObject({
  /** Connections, and limits of all requests. */
  listener,
  /** Agents and their instances. */
  agents: agentsConfig,
  /** Deliveries of webhooks. */
  webhooks: webhookKeys,
  /** Webhooks that agents and alerts send. */
  outgoing: outgoingKeys,
  /** The dashboard. */
  dashboard: dashboardKeys,
  /** The AI gateway. */
  gateway,
  /** By slug: another address of a built-in provider, or an additional OpenAI-compatible provider. Default: none. */
  providers: providerKeys,
  /** Tags of resources. */
  tags: tagKeys,
  /** Nodes that share a PostgreSQL database. */
  cluster: clusterKeys,
  /** The audit log. */
  audit: auditKeys,
  /** Alert rules. */
  alerts: z
    .strictObject({
      /** Time between two checks of the alert rules. Default 15 s. */
      checkIntervalMs: z.int().min(10).default(15_000),
    })
    .prefault({}),
});

export type ConfigFile = z.output<typeof configFile>;
export type ConfigFileInput = z.input<typeof configFile>;

/** Returns its argument; provides types for `signalbox.config.ts`. */
export function defineConfig(config: ConfigFileInput): ConfigFileInput {
  return config;
}
