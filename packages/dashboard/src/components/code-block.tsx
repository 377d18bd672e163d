import { CopyButton } from "./copy-button.tsx";

/** A scrollable block of code that can be focused with the keyboard. */
export function CodeBlock({
  code,
  label,
  canCopy = true,
  isWrapped = false,
}: {
  readonly code: string;
  readonly label: string;
  readonly canCopy?: boolean;
  /** Wraps long lines and places the copy button below the code. */
  readonly isWrapped?: boolean;
}) {
  return (
    <div className={`code-block ${isWrapped ? "code-block-wrapped" : ""}`}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard */}
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{code}</code>
      </pre>
      {canCopy && <CopyButton text={code} />}
    </div>
  );
}
