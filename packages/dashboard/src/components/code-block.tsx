import { CopyButton } from "./copy-button.tsx";

/** A scrollable block of code that can be focused with the keyboard. The copy button stands above the code, never on it. */
export function CodeBlock({
  code,
  label,
  caption = "",
  canCopy = true,
  isWrapped = false,
}: {
  readonly code: string;
  readonly label: string;
  /** Shown above the code, e.g. its language. */
  readonly caption?: string;
  readonly canCopy?: boolean;
  /** Wraps long lines. */
  readonly isWrapped?: boolean;
}) {
  return (
    <div className={`code-block ${isWrapped ? "code-block-wrapped" : ""}`}>
      {canCopy && (
        <div className="block-actions">
          <span className="muted small">{caption}</span>
          <CopyButton text={code} />
        </div>
      )}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard */}
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{code}</code>
      </pre>
    </div>
  );
}
