import type { FormEvent, ReactNode } from "react";
import { useAction } from "../http/use-action.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNotice } from "./error-notice.tsx";

interface FormDialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** Label of the submit button. */
  readonly verb: string;
  /** The dialog closes when it resolves to anything but false, and shows the error when it rejects. */
  readonly onSubmit: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly canSubmit?: boolean;
  readonly isWide?: boolean;
}

/** A form in a dialog. */
export function FormDialog({
  title,
  children,
  verb,
  onSubmit,
  onClose,
  canSubmit = true,
  isWide = false,
}: FormDialogProps) {
  const action = useAction(async () => {
    if ((await onSubmit()) !== false) onClose();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void action.run();
  };
  return (
    <Dialog title={title} onClose={onClose} isWide={isWide}>
      <form onSubmit={submit} className="stack">
        {children}
        {action.error !== null && <ErrorNotice error={action.error} />}
        <div className="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isBusy={action.isBusy} disabled={!canSubmit}>
            {verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
