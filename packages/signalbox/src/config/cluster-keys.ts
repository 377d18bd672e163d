/** The section `cluster` of the configuration file. */
import { z } from "zod";

export const clusterKeys = z
  .strictObject({
    /**
     * How long a node that cannot reach PostgreSQL answers gateway calls with the tokens and settings that it has in memory; afterwards it
     * answers 503. Within this time a token that was revoked at another node may still be accepted. Default 30 s.
     */
    maxStaleMs: z.int().min(2000).max(86_400_000).default(30_000),
    /** Encrypts the links between nodes: TLS with a key derived from `SIGNALBOX_CLUSTER_SECRET`, without certificates. Default false. */
    tls: z.boolean().default(false),
  })
  .prefault({});
