import { BulkDialog } from "../../components/bulk-dialog.tsx";
import { count } from "../../format/number.ts";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../session/session.ts";

interface ReplayAgentDialogProps {
  readonly agent: string;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

/** Replays the dead letters of all instances of an agent. */
export function ReplayAgentDialog({ agent, onDone, onClose }: ReplayAgentDialogProps) {
  const account = useAccount();
  const { page } = useAccountPaths();
  return (
    <BulkDialog
      title={`Replay dead letters of ${agent}`}
      noun="dead letters"
      onDone={onDone}
      onClose={onClose}
      after={<DeadLettersNow agent={agent} />}
      step={async (cursor) => {
        const { replayed, failed, cursor: next } = await account.agents.replayDeadLetters(agent, { cursor });
        return {
          replayed,
          skipped: 0,
          cursor: next,
          failed: failed.map(({ name, error }) => ({
            name,
            error,
            to: page("agents", agent, name, "dead-letters"),
          })),
        };
      }}
    >
      <p>
        All dead letters of all instances return to their queues with new attempts. Replay them after the
        cause is fixed: an item that fails in all of its attempts becomes a dead letter again.
      </p>
    </BulkDialog>
  );
}

const REFRESH_MS = 2000;

function DeadLettersNow({ agent }: { readonly agent: string }) {
  const account = useAccount();
  const problems = useResource(
    `dead letters ${account.id} ${agent}`,
    (signal) => account.agents.problems({ agent, problem: "dead_letters", limit: 1 }, { signal }),
    { refreshMs: REFRESH_MS },
  );
  if (problems.value === undefined) return null;
  const { dead_letters: letters, dead_letter_instances: instances } = problems.value.totals;
  return (
    <p className="muted small">
      {letters === 0
        ? "There are no dead letters now."
        : `${count(letters)} dead letters in ${count(instances)} instances now. Items that fail again are among them.`}
    </p>
  );
}
