import { CopyButton } from "./copy-button.tsx";

/** Code to copy, or to read: scrolls inside itself and can be reached by keyboard. */
export function CodeBlock({
  code,
  label,
  canCopy = true,
  isWrapped = false,
}: {
  readonly code: string;
  readonly label: string;
  readonly canCopy?: boolean;
  /** Long lines are folded and the button stands below: for commands in narrow places. */
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
