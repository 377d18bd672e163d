import type { Tags } from "./tagged-resource.ts";

/** A list of tags. Long values are truncated; the tooltip contains the whole tag. */
export function TagList({ tags }: { readonly tags: Tags }) {
  const entries = Object.entries(tags);
  if (entries.length === 0) return <span className="muted">none</span>;
  return (
    <ul className="tag-list">
      {entries.map(([key, value]) => (
        <li key={key} className="tag" title={`${key}=${value}`}>
          <span className="tag-key">{key}</span>
          <span className="tag-value">{value}</span>
        </li>
      ))}
    </ul>
  );
}

/** The tags that a change added, changed or removed. */
export function TagDifference({ before, after }: { readonly before: Tags; readonly after: Tags }) {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => before[key] !== after[key],
  );
  if (keys.length === 0) return <span className="muted">no changes</span>;
  return (
    <ul className="tag-list">
      {keys.map((key) => (
        <li key={key} className={`tag tag-${kindOf(before[key], after[key])}`}>
          <span className="tag-key">{key}</span>
          <span className="tag-value">
            {before[key] !== undefined && <del>{before[key]}</del>}
            {before[key] !== undefined && after[key] !== undefined && " → "}
            {after[key] !== undefined && <ins>{after[key]}</ins>}
          </span>
        </li>
      ))}
    </ul>
  );
}

function kindOf(before: string | undefined, after: string | undefined): string {
  if (before === undefined) return "added";
  return after === undefined ? "removed" : "changed";
}
