/** The instances in the catalog, read directly from the database, to prove that no instance was created. */
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
