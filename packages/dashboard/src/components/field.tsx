import { cloneElement, type ReactElement, type ReactNode, useId } from "react";

interface FieldProps {
  readonly label: string;
  /** Screen readers announce the hint after the label, as the description. */
  readonly hint?: ReactNode;
  /** The input, select or textarea. */
  readonly children: ReactElement<{ id?: string; "aria-describedby"?: string }>;
}

export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  const hintId = `${id}-hint`;
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        {label}
      </label>
      {cloneElement(children, { id, ...(hint == null ? {} : { "aria-describedby": hintId }) })}
      {hint != null && (
        <span className="field-hint" id={hintId}>
          {hint}
        </span>
      )}
    </div>
  );
}
