/** The `tags` section of the configuration file. */
import { z } from "zod";

const resourceTypeName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,63}$/, "expected lower-case letters, digits and _");

export const tagKeys = z
  .strictObject({
    /** Status of a read of a resource that was never tagged: 500 for compatibility, 404, or 200 with no tags. Default 500. */
    missing: z
      .literal([500, 404, 200])
      .or(z.enum(["500", "404", "200"]))
      .transform(Number)
      .default(500),
    /** Additional resource types: a name, or `{name, scope}` with scope `account` (default) or `zone`. Default: none. */
    resourceTypes: z
      .array(
        z.union([
          resourceTypeName,
          z.strictObject({
            /** The name of the type. */
            name: resourceTypeName,
            /** Whether resources of the type belong to an account or to a zone. Default `account`. */
            scope: z.enum(["account", "zone"]).default("account"),
          }),
        ]),
      )
      .default([]),
    /** Maximum number of tags of a resource. Default 1,000. */
    maxTagsPerResource: z.int().min(1).max(10_000).default(1000),
    /** Days after which changes are deleted from history and feed. Default 90. */
    historyDays: z.number().positive().max(36_500).default(90),
    /** Maximum number of changes per account in history and feed. Default 250,000. */
    historyChanges: z.int().min(100).default(250_000),
  })
  .prefault({});
