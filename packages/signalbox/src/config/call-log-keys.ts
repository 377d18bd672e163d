/** The sections `gateway.logs` and `gateway.prices` of the configuration file. */
import { z } from "zod";

const megabytes = (count: number) => count * 1024 * 1024;

export const callLogKeys = z
  .strictObject({
    /** Days after which calls, their bodies and usage data are deleted. Default 30. */
    maxAgeDays: z.int().min(1).max(3650).default(30),
    /** Maximum time before a finished call is written; `kill -9` can lose the calls of this time. Default 200 ms. */
    flushIntervalMs: z.int().min(1).max(10_000).default(200),
    /** Maximum stored size of a request or response body; longer bodies are truncated. Default 10 MiB. */
    maxBodyBytes: z.int().min(0).max(megabytes(100)).default(megabytes(10)),
    /**
     * Maximum disk size of the log; in PostgreSQL, of its rows and bodies. Above it the oldest bodies are deleted, then the oldest rows; usage data is kept. Default 8 GiB: a
     * million calls with bodies of 8 KB.
     */
    maxTotalBytes: z
      .int()
      .min(megabytes(1))
      .default(megabytes(8 * 1024)),
    /**
     * Keeps usage totals by token and by each key of the metadata, beside those by hour and model. Without them such usage is added up from the rows,
     * for each request. Switched on again, they are rebuilt from the rows. Default true.
     */
    usageTotals: z.boolean().default(true),
    /** Number of unwritten calls above which new calls are delayed; so are they above 64 MiB of unwritten bodies. Default 10,000. */
    maxQueuedCalls: z.int().min(1).max(1_000_000).default(10_000),
  })
  .prefault({});

const usdPerMillion = z.number().min(0);

const priceOverride = z.strictObject({
  /** Input. */
  in: usdPerMillion,
  /** Output. */
  out: usdPerMillion,
  /** Input read from the provider's prompt cache. Default: the value of `in`. */
  cached: usdPerMillion.optional(),
  /** Input written to the provider's prompt cache. Default: the value of `in`. */
  cacheWrite: usdPerMillion.optional(),
  /** Input written to the prompt cache for an hour. Default: the value of `cacheWrite`. */
  cacheWrite1h: usdPerMillion.optional(),
  /** Reasoning output. Default: the value of `out`. */
  reasoning: usdPerMillion.optional(),
  /** Sound in the input. Default: the value of `in`. */
  audioIn: usdPerMillion.optional(),
  /** Sound in the output. Default: the value of `out`. */
  audioOut: usdPerMillion.optional(),
  /** Pictures in the input. Default: the value of `in`. */
  imageIn: usdPerMillion.optional(),
  /** Pictures in the output. Default: the value of `out`. */
  imageOut: usdPerMillion.optional(),
  /** A thousand web searches. Default 0. */
  searches: usdPerMillion.optional(),
  /** A thousand searches in files that the provider stores. Default 0. */
  fileSearches: usdPerMillion.optional(),
  /** An hour of sound, for models that are billed by time. Default: the list price. */
  audioHour: usdPerMillion.optional(),
  /** A thousand pages of documents, for models that are billed by the page. Default: the list price. */
  pages: usdPerMillion.optional(),
  /** A picture, for models that are billed by the picture. Default: the list price. */
  image: usdPerMillion.optional(),
  /** A million characters, for models that are billed by what they speak. Default: the list price. */
  characters: usdPerMillion.optional(),
  /** A thousand searches, for models that rank documents and are billed by the search. Default: the list price. */
  rankings: usdPerMillion.optional(),
  /** Factors of the service tiers `flex`, `batch`, `priority` (also named `fast`) and `ultrafast`. Default: those of the provider. */
  tiers: z.partialRecord(z.enum(["flex", "batch", "priority", "ultrafast"]), z.number().min(0)).optional(),
});

export const priceTable = z.record(z.string(), z.record(z.string(), priceOverride));

/** By provider slug, then by model (`*`: all other models of the provider), in US dollars per million tokens. Default: list prices. */
export const priceKeys = priceTable.default({});

export const priceListKeys = z.strictObject({
  /**
   * Address of a list in the form of `@pydantic/genai-prices` (`data.json`). A price that becomes more than three times higher or lower, free or unknown
   * waits for `acceptSha256`.
   */
  url: z.url({ protocol: /^https?$/ }),
  /** SHA-256 of a list whose prices are taken however far they move. Default: none. */
  acceptSha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
});
