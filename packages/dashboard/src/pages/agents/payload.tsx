/** Maximum length of a value that is not collapsed, in characters. */
const MAX_INLINE = 120;

/** A JSON value in a table cell. Long values are collapsed. */
export function Payload({ value }: { readonly value: unknown }) {
  const text = JSON.stringify(value) ?? "undefined";
  if (text.length <= MAX_INLINE) return <code className="cell-payload">{text}</code>;
  return (
    <details className="cell-payload">
      <summary>
        <code>{text.slice(0, MAX_INLINE)}…</code>
      </summary>
      <pre className="payload">{JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
