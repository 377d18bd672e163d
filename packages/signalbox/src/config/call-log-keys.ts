/** Keys of the gateway's call log and prices: `gateway.logs` and `gateway.prices`. */
import { z } from "zod";

const megabytes = (count: number) => count * 1024 * 1024;

export const callLogKeys = z
  .strictObject({
    /** Days that calls, their bodies and the usage figures are kept. Default 30. */
    maxAgeDays: z.int().min(1).max(3650).default(30),
    /** Longest time a finished call waits before it is written; what `kill -9` can lose. Default 200 ms. */
    flushIntervalMs: z.int().min(1).max(10_000).default(200),
    /** Bytes kept of one request or response body; the rest is cut off. Default 10 MiB. */
    maxBodyBytes: z.int().min(0).max(megabytes(100)).default(megabytes(10)),
    /**
     * Bytes of disk that the log may take in all. Beyond it the oldest bodies are removed, and when none is left, the oldest rows; usage
     * figures stay. Default 8 GiB: a fifth of the smallest disks servers come with, and a million calls with bodies of 8 KB.
     */
    maxTotalBytes: z
      .int()
      .min(megabytes(1))
      .default(megabytes(8 * 1024)),
    /** Finished calls waiting to be written before new ones are slowed down. Default 10,000. */
    maxQueuedCalls: z.int().min(1).max(1_000_000).default(10_000),
    /** Bytes of bodies waiting to be written before new calls are slowed down. Default 64 MiB. */
    maxQueuedBytes: z.int().min(1024).default(megabytes(64)),
  })
  .prefault({});

const usdPerMillion = z.number().min(0);

/** By provider slug, then by model (`*`: every other model of the provider); US dollars per million tokens. Default: list prices. */
export const priceKeys = z
  .record(
    z.string(),
    z.record(
      z.string(),
      z.strictObject({
        in: usdPerMillion,
        out: usdPerMillion,
        /** Input read from the provider's prompt cache. Default: as `in`. */
        cached: usdPerMillion.optional(),
        /** Input written to the provider's prompt cache. Default: as `in`. */
        cacheWrite: usdPerMillion.optional(),
        /** Output spent on reasoning. Default: as `out`. */
        reasoning: usdPerMillion.optional(),
      }),
    ),
  )
  .default({});
