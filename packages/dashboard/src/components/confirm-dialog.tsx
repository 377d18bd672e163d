import type { ReactNode } from "react";
import { useAction } from "../http/use-action.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNotice } from "./error-notice.tsx";

interface ConfirmDialogProps {
  readonly title: string;
  /** What will happen. */
  readonly children: ReactNode;
  /** The button's verb. */
  readonly verb: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** For what cannot be undone. Closes when it worked, stays with the reason when not. */
export function ConfirmDialog({ title, children, verb, onConfirm, onClose }: ConfirmDialogProps) {
  const action = useAction(async () => {
    await onConfirm();
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {action.error !== null && <ErrorNotice error={action.error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" isBusy={action.isBusy} onClick={() => void action.run()}>
          {verb}
        </Button>
      </div>
    </Dialog>
  );
}
