import { type FormEvent, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { Table } from "../../../components/table.tsx";
import { plural } from "../../../format/number.ts";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useHasPermission } from "../../../session/session.ts";

interface SqlResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly truncated: boolean;
}

interface TableName {
  readonly name: string;
  readonly type: string;
}

/** The runtime's tables begin with `_signalbox_`, those of SQLite with `sqlite_`, those of worker programs' storage with `_cf_`. */
const TABLES = `SELECT name, type FROM sqlite_schema
WHERE type IN ('table', 'view') AND name NOT LIKE '\\_signalbox\\_%' ESCAPE '\\'
  AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' ORDER BY name`;
const FIRST_ROWS = 100;

/** The tables of the instance, and read-only statements on a copy of its database. */
export function SqlTab({ path }: { readonly path: string }) {
  const canEdit = useHasPermission("agents.edit");
  const [sql, setSql] = useState("");
  const [table, setTable] = useState<string | null>(null);
  const [result, setResult] = useState<SqlResult | null>(null);
  const tables = useResource(canEdit ? `${path} tables` : null, async (signal) => {
    const { rows } = (await request<SqlResult>(path, { method: "POST", body: { sql: TABLES }, signal }))
      .result;
    return rows as readonly unknown[] as readonly TableName[];
  });
  const query = useAction(async (text: string) => {
    // The rows of an earlier statement must not stand below the error of this one.
    setResult(null);
    setResult((await request<SqlResult>(path, { method: "POST", body: { sql: text } })).result);
    tables.reload();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTable(null);
    void query.run(sql);
  };
  const open = (name: string) => {
    const text = `SELECT * FROM ${quote(name)} LIMIT ${FIRST_ROWS}`;
    setTable(name);
    setSql(text);
    void query.run(text);
  };
  return (
    <div className="sql">
      {canEdit && (
        <nav className="panel" aria-labelledby="tables-title">
          <h2 id="tables-title">Tables</h2>
          {tables.error !== null && <ErrorNotice error={tables.error} onRetry={tables.reload} />}
          {tables.value?.length === 0 && (
            <p className="muted small">The agent has no tables of its own. It creates them with this.sql.</p>
          )}
          <ul className="table-names">
            {tables.value?.map(({ name, type }) => (
              <li key={name}>
                <button type="button" aria-current={name === table} onClick={() => open(name)}>
                  <code>{name}</code>
                  {type === "view" && <span className="muted small"> view</span>}
                </button>
              </li>
            ))}
          </ul>
        </nav>
      )}
      <section className="stack" aria-labelledby="sql-title">
        <div className="panel">
          <h2 id="sql-title">SQL</h2>
          <form onSubmit={submit} className="stack">
            <Field
              label="Statement"
              hint="Runs read-only on a copy of the instance's database and returns at most 1,000 rows."
            >
              <textarea
                className="mono"
                value={sql}
                rows={3}
                spellCheck={false}
                placeholder="SELECT …"
                onChange={({ target }) => setSql(target.value)}
              />
            </Field>
            <div>
              <Button
                type="submit"
                kind="primary"
                isBusy={query.isBusy}
                disabled={!canEdit || sql.trim() === ""}
              >
                Run
              </Button>
            </div>
          </form>
          {!canEdit && <p className="notice notice-warn">Running SQL requires the agents.edit permission.</p>}
          {query.error !== null && <ErrorNotice error={query.error} />}
        </div>
        {result !== null && <SqlRows result={result} hasLimit={table !== null} />}
      </section>
    </div>
  );
}

function SqlRows({ result, hasLimit }: { readonly result: SqlResult; readonly hasLimit: boolean }) {
  const rows = result.rows.map((values, index) => ({ index, values }));
  const names = [...new Set(result.rows.flatMap((row) => Object.keys(row)))];
  return (
    <div className="stack" role="status">
      <p className="muted small">
        {hasLimit && rows.length === FIRST_ROWS ? `The first ${FIRST_ROWS} rows` : plural(rows.length, "row")}
        {result.truncated && ", truncated at the limit"}
      </p>
      {rows.length > 0 && (
        <Table
          label="Rows"
          rows={rows}
          keyOf={({ index }) => String(index)}
          columns={names.map((name) => ({
            title: name,
            cell: ({ values }: (typeof rows)[number]) => <Cell value={values[name]} />,
          }))}
        />
      )}
    </div>
  );
}

function Cell({ value }: { readonly value: unknown }) {
  if (value === null || value === undefined) return <span className="muted small">NULL</span>;
  return (
    <code className="cell-payload sql-value">
      {typeof value === "string" ? value : JSON.stringify(value)}
    </code>
  );
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
