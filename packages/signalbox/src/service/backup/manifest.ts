/** The manifest of a backup: what is in it, and which version can restore it. */
import { z } from "zod";
import { ArchiveError, type ArchiveFile } from "../../engines/archive/index.ts";
import { VERSION } from "../../version.ts";

/** Increased when an earlier version cannot restore the archive any more. */
export const FORMAT = 1;

export const migrationSchema = z.object({ id: z.int(), checksum: z.string(), needs: z.int() });

export const manifestSchema = z.object({
  product: z.literal("signalbox"),
  format: z.int(),
  /** The version that wrote the backup. */
  version: z.string(),
  /** When the backup began: everything that was acknowledged before is in it. */
  created_at: z.iso.datetime(),
  engine: z.enum(["sqlite", "postgres"]),
  /** The migrations that were applied to the database. */
  migrations: z.array(migrationSchema),
  /** Version of the tables that every instance has. */
  instance_version: z.int(),
  includes: z.object({
    call_logs: z.boolean(),
    /** Files of the data folder with secrets. */
    secrets: z.array(z.string()),
    /** Variables whose values are not in the backup, and that a restored server needs. */
    variables: z.array(z.string()),
  }),
  counts: z.object({ instances: z.int(), call_log_days: z.int(), tables: z.int(), rows: z.int() }),
  /** Of PostgreSQL: the next numbers, and the days of the call log. */
  postgres: z.object({ sequences: z.record(z.string(), z.string()), days: z.array(z.int()) }).optional(),
});

export type Manifest = z.output<typeof manifestSchema>;
export type StoredMigration = z.output<typeof migrationSchema>;

/** Throws `ArchiveError` for a backup of a later version. */
export function readManifest(archive: ArchiveFile): Manifest {
  const { format, version } = archive.manifest;
  if (typeof format === "number" && format > FORMAT)
    throw new ArchiveError(
      `${archive.path} was written by version ${String(version)}, whose backups this version (${VERSION}) cannot restore; upgrade first`,
    );
  const { data, error } = manifestSchema.safeParse(archive.manifest);
  if (data === undefined)
    throw new ArchiveError(`${archive.path} has a manifest that is not one of a backup`, { cause: error });
  return data;
}
