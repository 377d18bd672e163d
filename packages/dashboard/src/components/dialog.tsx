import { type ReactNode, useId, useLayoutEffect, useRef } from "react";

const FIRST_FIELD = ["input", "select", "textarea", ".dialog-actions button"]
  .map((control) => `.stack ${control}:not(:disabled)`)
  .join(", ");

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly isWide?: boolean;
}

/** A modal `<dialog>`, open while it is mounted. The first field has the focus; the browser handles Escape, the backdrop and the focus afterwards. */
export function Dialog({ title, onClose, children, isWide = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // A layout effect is cleaned up before the element is removed, so `close` can return the focus to the previous element.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (dialog !== null && !dialog.open) {
      dialog.showModal();
      // The browser focuses the first control, which closes the dialog.
      dialog.querySelector<HTMLElement>(FIRST_FIELD)?.focus();
    }
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog ${isWide ? "dialog-wide" : ""}`}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header className="dialog-header">
        <h2 id={titleId}>{title}</h2>
        <button
          type="button"
          className="button button-quiet button-small"
          onClick={onClose}
          aria-label="Close"
        >
          ✕
        </button>
      </header>
      <div className="stack">{children}</div>
    </dialog>
  );
}
