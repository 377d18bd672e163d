/** A folder in which the files of one test run share an empty PostgreSQL cluster; see `test/support/test-postgres.ts`. */
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NOBODY, TEMPLATE_VARIABLE } from "../../test/support/test-postgres.ts";

/** Called once for each project of the test runner. */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[TEMPLATE_VARIABLE] !== undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "signalbox-postgres-template-"));
  if (process.getuid?.() === 0) await chown(folder, NOBODY, NOBODY);
  process.env[TEMPLATE_VARIABLE] = folder;
  return () => rm(folder, { recursive: true, force: true });
}
