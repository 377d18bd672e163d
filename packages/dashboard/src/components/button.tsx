import type { ButtonHTMLAttributes } from "react";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly kind?: "primary" | "plain" | "quiet" | "danger";
  readonly size?: "normal" | "small";
  /** The action that the button started is still running. */
  readonly isBusy?: boolean;
}

export function Button({
  kind = "plain",
  size = "normal",
  isBusy = false,
  className = "",
  disabled,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      className={`button button-${kind} ${size === "small" ? "button-small" : ""} ${className}`}
      aria-busy={isBusy || undefined}
      disabled={disabled === true || isBusy}
      {...rest}
    />
  );
}
