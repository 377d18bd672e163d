import { type ReactNode, useMemo, useState } from "react";
import { CopyButton } from "./copy-button.tsx";
import { jsonText, openDepth } from "./json-tree.ts";

/** Members of one object or list that are rendered; the raw view has all of them. */
const MAX_MEMBERS = 500;
/** Deeper values are shown as text: browsers are slow with elements in each other. */
const MAX_DEPTH = 40;
/** In characters; the raw view has the whole text. */
const MAX_TEXT = 20_000;

/** A JSON value as a tree whose objects and lists can be folded. The members of a folded one are not rendered: there can be very many. */
export function JsonView({
  value,
  label,
  canCopy = true,
}: {
  readonly value: unknown;
  readonly label: string;
  readonly canCopy?: boolean;
}) {
  const depth = useMemo(() => openDepth(value), [value]);
  const text = useMemo(() => (canCopy ? jsonText(value, 2) : null), [value, canCopy]);
  return (
    <div className="json-view" role="group" aria-label={label}>
      {canCopy && (
        <div className="block-actions">
          <span className="muted small">JSON</span>
          {text !== null && <CopyButton text={text} />}
        </div>
      )}
      <div className="json-tree">
        <Node value={value} depth={0} openDepth={depth} />
      </div>
    </div>
  );
}

interface NodeProps {
  readonly value: unknown;
  readonly name?: string;
  readonly depth: number;
  /** Levels that are open at first. */
  readonly openDepth: number;
}

function Node(props: NodeProps) {
  const { value, name, depth } = props;
  if (typeof value === "object" && value !== null && depth <= MAX_DEPTH && Object.keys(value).length > 0)
    return <Branch {...props} value={value} />;
  return (
    <div className="json-leaf">
      <Key name={name} />
      {scalar(value)}
    </div>
  );
}

function Branch({ value, name, depth, openDepth: levels }: NodeProps & { readonly value: object }) {
  const [isOpen, setOpen] = useState(depth < levels);
  const members = Object.entries(value);
  return (
    <details
      className="json-node"
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <Key name={name} />
        <span className="muted">{Array.isArray(value) ? `[${members.length}]` : `{${members.length}}`}</span>
      </summary>
      {isOpen && (
        <div className="json-members">
          {members.slice(0, MAX_MEMBERS).map(([member, inner]) => (
            <Node key={member} name={member} value={inner} depth={depth + 1} openDepth={levels} />
          ))}
          {members.length > MAX_MEMBERS && <div className="muted">… {members.length - MAX_MEMBERS} more</div>}
        </div>
      )}
    </details>
  );
}

function Key({ name }: { readonly name: string | undefined }) {
  return name === undefined ? null : <span className="json-key">{name}: </span>;
}

function scalar(value: unknown): ReactNode {
  const text = jsonText(value) ?? "…";
  const shown = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  return <span className={typeof value === "string" ? "json-text" : "json-other"}>{shown}</span>;
}
