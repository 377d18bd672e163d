/** The section `cluster` of the configuration file. */
import { z } from "zod";

/** More than the cores of any machine; a typing error should not start thousands. */
export const MAX_PROCESSES = 256;

export const clusterKeys = z
  .strictObject({
    /**
     * How long a node that cannot reach PostgreSQL answers gateway calls with the tokens and settings that it has in memory; afterwards it
     * answers 503. Within this time a token that was revoked at another node may still be accepted. Default 30 s.
     */
    maxStaleMs: z.int().min(2000).max(86_400_000).default(30_000),
    /**
     * How long this node may be silent before the others declare it dead and take its instances over. More for machines that pause: virtual machines
     * that are moved, or that share their processors with many. Meanwhile requests for the instances of a node that was killed, and changes of
     * settings, wait. Default 2.5 s.
     */
    deadAfterMs: z.int().min(2500).max(600_000).default(2500),
    /**
     * How many processes of this machine serve together behind its one port, each a node of the cluster: a number, or `auto` for one per core.
     * More than one need PostgreSQL and `SIGNALBOX_CLUSTER_SECRET`; without them `auto` is 1: SQLite stays one process. Read at start. Default 1.
     */
    processes: z.union([z.literal("auto"), z.int().min(1).max(MAX_PROCESSES)]).default(1),
    /** Encrypts the links between nodes: TLS with a key derived from `SIGNALBOX_CLUSTER_SECRET`, without certificates. Default false. */
    tls: z.boolean().default(false),
  })
  .prefault({});
