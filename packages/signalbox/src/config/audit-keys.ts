/** The `audit` section of the configuration file. */
import { z } from "zod";

export const auditKeys = z
  .strictObject({
    /** Days after which entries of the audit log are deleted. Default 365. */
    retentionDays: z.number().positive().max(36_500).default(365),
    /** Maximum number of entries of one account; the oldest are deleted. Default 1,000,000. */
    maxEntries: z.int().min(100).default(1_000_000),
  })
  .prefault({});
