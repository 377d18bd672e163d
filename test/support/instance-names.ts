/** Which instances exist on disk, read beside the server: what a test about "nothing was created" must look at. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

export async function instanceNames(dataDir: string, agent = "webhook-agent"): Promise<string[]> {
  const database = new DatabaseSync(join(dataDir, "signalbox.db"), { readOnly: true });
  try {
    const rows = database.prepare("SELECT name FROM agent_instance WHERE agent = ? ORDER BY name").all(agent);
    return rows.map((row) => String(row["name"]));
  } finally {
    database.close();
  }
}
