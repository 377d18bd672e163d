/** The `audit` section of the configuration file. */
import { z } from "zod";
import { isAddressRange } from "../engines/ip-address/index.ts";

export const auditKeys = z
  .strictObject({
    /** Days after which entries of the audit log are deleted. Default 365. */
    retentionDays: z.number().positive().max(36_500).default(365),
    /** Maximum number of entries of one account; the oldest are deleted. Default 1,000,000. */
    maxEntries: z.int().min(100).default(1_000_000),
    /**
     * Addresses and CIDR ranges of reverse proxies. The last address in `X-Forwarded-For` that is none of them is recorded as the address of
     * the client, in addition to `listener.trustedProxies`. Default: none.
     */
    trustedProxies: z
      .array(z.string().refine(isAddressRange, "expected an address or a CIDR range"))
      .default([]),
  })
  .prefault({});
