import type { ReactNode } from "react";
import { useAction } from "../http/use-action.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNotice } from "./error-notice.tsx";

interface ConfirmDialogProps {
  readonly title: string;
  /** Describes the consequences. */
  readonly children: ReactNode;
  /** Label of the confirm button. */
  readonly verb: string;
  /** Label of the button that closes the dialog. Default: Cancel. */
  readonly dismiss?: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** Asks for confirmation of an action that cannot be undone. The dialog closes on success and shows the error on failure. */
export function ConfirmDialog({
  title,
  children,
  verb,
  dismiss = "Cancel",
  onConfirm,
  onClose,
}: ConfirmDialogProps) {
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {action.error !== null && <ErrorNotice error={action.error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>{dismiss}</Button>
        <Button kind="danger" isBusy={action.isBusy} onClick={() => void action.run()}>
          {verb}
        </Button>
      </div>
    </Dialog>
  );
}
