/** The `tags` section of the configuration file. */
import { z } from "zod";

const resourceTypeName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/, "expected lower-case letters, digits and _");

export const tagKeys = z
  .strictObject({
    /** Status of reading a resource that was never tagged: 500 as the contract has it, 404, or 200 with an empty set. Default 500. */
    missing: z
      .literal([500, 404, 200])
      .or(z.enum(["500", "404", "200"]))
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
