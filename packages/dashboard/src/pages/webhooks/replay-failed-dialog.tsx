import type { ReplayFilter } from "@signalbox/client";
import { BulkDialog } from "../../components/bulk-dialog.tsx";
import { useAccount, useAccountPaths } from "../../session/session.ts";

interface ReplayFailedDialogProps {
  readonly filter: ReplayFilter;
  /** What the filter selects, in words. */
  readonly scope: string;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Replays failed deliveries that nobody has replayed and that the sender has not repeated with success. */
export function ReplayFailedDialog({ filter, scope, onDone, onClose }: ReplayFailedDialogProps) {
  const account = useAccount();
  const { page } = useAccountPaths();
  return (
    <BulkDialog
      title="Replay failed deliveries"
      noun="deliveries"
      onDone={onDone}
      onClose={onClose}
      step={async (cursor) => {
        const {
          replayed,
          failed,
          skipped,
          cursor: next,
        } = await account.webhooks.replayFailed({
          ...filter,
          cursor,
        });
        return {
          replayed,
          skipped,
          cursor: next,
          failed: failed.map(({ id, error }) => ({
            name: id,
            error,
            to: page("webhooks", "deliveries", id),
          })),
        };
      }}
    >
      <p>
        Failed deliveries {scope} are given to their instances again, oldest first. Deliveries that were
        replayed before, or that the sender has repeated with success, are left out.
      </p>
    </BulkDialog>
  );
}
