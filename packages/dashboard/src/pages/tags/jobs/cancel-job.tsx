import type { TagJob } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ConfirmDialog } from "../../../components/confirm-dialog.tsx";
import { useAccount, useHasPermission } from "../../../session/session.ts";

interface CancelJobProps {
  readonly job: TagJob;
  readonly size?: "normal" | "small";
  readonly onDone: () => void;
}

/** A button for a job that runs; nothing for another one. */
export function CancelJob({ job, size = "normal", onDone }: CancelJobProps) {
  const { tags } = useAccount();
  const canEdit = useHasPermission("tags.edit");
  const [isAsking, setAsking] = useState(false);
  if (!isAsking && (!canEdit || job.state !== "running")) return null;
  return (
    <>
      <Button size={size} onClick={() => setAsking(true)}>
        Cancel job
      </Button>
      {isAsking && (
        <ConfirmDialog
          title="Cancel job"
          verb="Cancel job"
          dismiss="Keep running"
          onConfirm={async () => {
            // A job that has ended in the meantime stays as it is.
            await tags.cancelJob(job.id);
            onDone();
          }}
          onClose={() => setAsking(false)}
        >
          <p>The job changes nothing more. What it has changed stays.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
