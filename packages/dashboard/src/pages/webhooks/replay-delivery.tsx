import type { DeliveryError } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { request } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { useHasPermission } from "../../session/session.ts";
import { ErrorText } from "../agents/error-text.tsx";
import { describeReason } from "./delivery-status.ts";
import type { DeliveryDetail } from "./webhook.ts";

interface ReplayDeliveryProps {
  readonly delivery: DeliveryDetail;
  readonly path: string;
  readonly onReplayed: () => void;
}

interface ReplayOutcome {
  readonly status: string;
  readonly error: DeliveryError | null;
}

/** Gives a stored delivery to its instance again, and shows the outcome. */
export function ReplayDelivery({ delivery, path, onReplayed }: ReplayDeliveryProps) {
  const canEdit = useHasPermission("webhooks.edit");
  const [outcome, setOutcome] = useState<ReplayOutcome | null>(null);
  const replay = useAction(async () => {
    setOutcome(null);
    setOutcome((await request<ReplayOutcome>(`${path}/replay`, { method: "POST" })).result);
    onReplayed();
  });
  if (!canEdit || delivery.status === "rejected" || delivery.body === null || delivery.instance === null)
    return null;
  return (
    <section className="stack" aria-label="Replay">
      <div>
        <Button isBusy={replay.isBusy} onClick={() => void replay.run()}>
          Replay
        </Button>
      </div>
      {outcome !== null && (
        <div
          className={`notice ${outcome.status === "failed" ? "notice-bad" : "notice-good"}`}
          role="status"
          data-testid="replay-outcome"
        >
          <p>
            {outcome.status === "failed"
              ? "The replay failed again."
              : `Replayed: ${describeReason(outcome.status)}.`}
          </p>
          {outcome.error !== null && (
            <ErrorText
              message={`${outcome.error.name}: ${outcome.error.message}`}
              stack={outcome.error.stack}
            />
          )}
        </div>
      )}
      {replay.error !== null && <ErrorNotice error={replay.error} />}
    </section>
  );
}
