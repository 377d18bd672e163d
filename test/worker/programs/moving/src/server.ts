/** An object with everything that can be stored, which is exported and imported as the guide says. `moving.ts` is the code of the guide. */
import { DurableObject } from "cloudflare:workers";
import { exportObject, importObject } from "./moving.ts";

interface Env {
  readonly Notes: DurableObjectNamespace<Notes>;
}

export class Notes extends DurableObject<Env> {
  /** Tables that exist before anything is imported. */
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    ctx.storage.sql.exec(
      `CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, size REAL, bytes BLOB, "a ""b" TEXT)`,
    );
  }

  override alarm(): void {}

  async fill(): Promise<void> {
    const { sql, kv } = this.ctx.storage;
    const bytes = new Uint8Array([0, 1, 255]).buffer;
    for (let i = 1; i <= 300; i += 1)
      sql.exec(
        "INSERT INTO notes (text, size, bytes) VALUES (?, ?, ?)",
        `note ${i} — ü`,
        i / 8,
        i % 2 ? bytes : null,
      );
    sql.exec("CREATE INDEX by_text ON notes (text)");
    sql.exec("CREATE VIEW small AS SELECT id FROM notes WHERE size < 1");
    sql.exec("CREATE VIRTUAL TABLE found USING fts5(text)");
    sql.exec("INSERT INTO found SELECT text FROM notes");
    sql.exec("CREATE TABLE log (text TEXT) STRICT");
    sql.exec("CREATE TRIGGER logged AFTER INSERT ON notes BEGIN INSERT INTO log VALUES (new.text); END");
    kv.put("settings", { theme: "dark", list: [1, null, "ü"] });
    kv.put("bytes", bytes);
    await this.ctx.storage.setAlarm(Date.UTC(2100, 0, 1));
  }

  async content(): Promise<unknown> {
    const { sql, kv } = this.ctx.storage;
    const names = sql.exec(
      "SELECT type, name FROM sqlite_master WHERE name IN ('by_text', 'small', 'found', 'log', 'logged')",
    );
    // The trigger runs for what is inserted from now on, and only for it.
    sql.exec("INSERT INTO notes (text) VALUES ('last')");
    return {
      names: [...names].map(({ type, name }) => `${String(type)} ${String(name)}`).toSorted(),
      notes: sql
        .exec(
          "SELECT count(*) AS n, sum(size) AS size, sum(length(bytes)) AS bytes, max(id) AS id FROM notes",
        )
        .one(),
      small: sql.exec("SELECT count(*) AS n FROM small").one(),
      found: sql.exec("SELECT count(*) AS n FROM found WHERE found MATCH '7'").one(),
      log: sql.exec("SELECT text FROM log").toArray(),
      settings: kv.get("settings"),
      bytes: [...new Uint8Array(kv.get<ArrayBuffer>("bytes") ?? new ArrayBuffer(0))],
      alarm: await this.ctx.storage.getAlarm(),
    };
  }

  export(): Promise<string> {
    return exportObject(this.ctx);
  }

  import(text: string): Promise<void> {
    return importObject(this.ctx, text);
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [, name = "", method] = new URL(request.url).pathname.split("/");
    const notes = env.Notes.getByName(name);
    if (method === "fill") await notes.fill();
    if (method === "content") return Response.json(await notes.content());
    if (method === "import") await notes.import(await request.text());
    return new Response(method === "export" ? await notes.export() : "done");
  },
};
