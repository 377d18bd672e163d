const SHORT = 120;

/** A JSON value in a table: short ones as they are, long ones folded. */
export function Payload({ value }: { readonly value: unknown }) {
  const text = JSON.stringify(value) ?? "undefined";
  if (text.length <= SHORT) return <code>{text}</code>;
  return (
    <details>
      <summary>
        <code>{text.slice(0, SHORT)}…</code>
      </summary>
      <pre className="payload">{JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
