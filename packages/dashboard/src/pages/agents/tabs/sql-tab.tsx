import { type FormEvent, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { Table } from "../../../components/table.tsx";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useHasPermission } from "../../../session/session.ts";

interface SqlResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly truncated: boolean;
}

const TABLES = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name";

/** Runs one read-only statement on a copy of the instance's database. */
export function SqlTab({ path }: { readonly path: string }) {
  const canEdit = useHasPermission("agents.edit");
  const [sql, setSql] = useState(TABLES);
  const [result, setResult] = useState<SqlResult | null>(null);
  const query = useAction(async (text: string) => {
    // The rows of an earlier statement must not stand below the error of this one.
    setResult(null);
    setResult((await request<SqlResult>(path, { method: "POST", body: { sql: text } })).result);
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void query.run(sql);
  };
  return (
    <section className="section" aria-labelledby="sql-title">
      <div className="panel">
        <h2 id="sql-title">SQL</h2>
        <p className="muted">
          Queries run read-only on a copy of the instance's database and return at most 1,000 rows.
        </p>
        <form onSubmit={submit} className="stack">
          <Field label="Statement">
            <textarea
              value={sql}
              rows={4}
              spellCheck={false}
              onChange={({ target }) => setSql(target.value)}
            />
          </Field>
          <div className="row">
            <Button
              type="submit"
              kind="primary"
              isBusy={query.isBusy}
              disabled={!canEdit || sql.trim() === ""}
            >
              Run
            </Button>
            <Button
              disabled={!canEdit}
              onClick={() => {
                setSql(TABLES);
                void query.run(TABLES);
              }}
            >
              Show tables
            </Button>
          </div>
        </form>
        {!canEdit && <p className="notice notice-warn">Running SQL requires the agents.edit permission.</p>}
        {query.error !== null && <ErrorNotice error={query.error} />}
      </div>
      {result !== null && <SqlRows result={result} />}
    </section>
  );
}

function SqlRows({ result }: { readonly result: SqlResult }) {
  const rows = result.rows.map((values, index) => ({ index, values }));
  const names = [...new Set(result.rows.flatMap((row) => Object.keys(row)))];
  return (
    <div className="stack" role="status">
      <p className="muted small">
        {rows.length} {rows.length === 1 ? "row" : "rows"}
        {result.truncated && ", truncated at the limit"}
      </p>
      {rows.length > 0 && (
        <Table
          label="Rows"
          rows={rows}
          keyOf={({ index }) => String(index)}
          columns={names.map((name) => ({
            title: name,
            cell: ({ values }: (typeof rows)[number]) => <code>{cellText(values[name])}</code>,
          }))}
        />
      )}
    </div>
  );
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "string" ? value : JSON.stringify(value);
}
