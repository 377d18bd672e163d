import type {
  EventReplayDetail,
  EventReplayPlan,
  EventReplayQuery,
  ListedWebhookRoute,
} from "@signalbox/client";
import { useEffect, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { Dialog } from "../../../components/dialog.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { SelectField } from "../../../components/select-field.tsx";
import { Time } from "../../../components/time.tsx";
import { useAction } from "../../../http/use-action.ts";
import { useAccount } from "../../../session/session.ts";

const POLL_MS = 1000;
const STATES = [
  ["failed", "Failed"],
  ["ignored", "Ignored, if the filters match now"],
  ["cancelled", "Cancelled"],
  ["delivered", "Delivered"],
] as const;

interface ReplayEventsDialogProps {
  readonly source: string;
  readonly routes: readonly ListedWebhookRoute[];
  readonly onClose: () => void;
}

/** Says what a bulk replay would do, does it, and shows its progress and results. */
export function ReplayEventsDialog({ source, routes, onClose }: ReplayEventsDialogProps) {
  const { routing } = useAccount().webhooks;
  const [state, setState] = useState<(typeof STATES)[number][0]>("failed");
  const [route, setRoute] = useState("");
  const [since, setSince] = useState("");
  const [plan, setPlan] = useState<EventReplayPlan | null>(null);
  const [replay, setReplay] = useState<EventReplayDetail | null>(null);
  const query: EventReplayQuery = {
    source,
    state,
    route: route === "" ? undefined : route,
    since: since === "" ? undefined : new Date(since).toISOString(),
  };
  const make = useAction(async () => setPlan(await routing.planReplay(query)));
  const start = useAction(async () => setReplay(await routing.replay((await routing.startReplay(query)).id)));
  const cancel = useAction(async () => {
    if (replay !== null) await routing.cancelReplay(replay.id);
  });
  const isOver = replay !== null && replay.state !== "running" && replay.results.waiting === 0;
  useEffect(() => {
    if (replay === null || isOver) return undefined;
    const timer = setInterval(() => {
      // The next look may succeed.
      routing.replay(replay.id).then(setReplay, () => undefined);
    }, POLL_MS);
    return () => clearInterval(timer);
  }, [replay, isOver, routing]);
  const change = (set: () => void) => {
    set();
    setPlan(null);
  };
  const error = make.error ?? start.error ?? cancel.error;
  return (
    <Dialog title={`Replay events of ${source}`} onClose={onClose} isWide>
      {replay === null ? (
        <>
          <div className="replay-fields">
            <SelectField
              label="Events"
              value={state}
              options={STATES}
              onChange={(next) => change(() => setState(next))}
            />
            <SelectField
              label="Route"
              value={route}
              options={[["", "All routes"], ...routes.map(({ name }) => [name, name] as const)]}
              onChange={(next) => change(() => setRoute(next))}
            />
            <Field label="Since">
              <input
                type="datetime-local"
                value={since}
                onChange={({ target }) => change(() => setSince(target.value))}
              />
            </Field>
          </div>
          {plan !== null && <Plan plan={plan} />}
        </>
      ) : (
        <Progress replay={replay} />
      )}
      {error !== null && <ErrorNotice error={error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>{replay === null ? "Cancel" : "Close"}</Button>
        {replay === null && plan === null && (
          <Button kind="primary" isBusy={make.isBusy} onClick={() => void make.run()}>
            Show the plan
          </Button>
        )}
        {replay === null && plan !== null && (
          <Button
            kind="primary"
            isBusy={start.isBusy}
            disabled={plan.count === 0}
            onClick={() => void start.run()}
          >
            Replay {plan.count} events
          </Button>
        )}
        {replay !== null && !isOver && replay.state !== "cancelled" && (
          <Button kind="danger" isBusy={cancel.isBusy} onClick={() => void cancel.run()}>
            Stop the replay
          </Button>
        )}
      </div>
    </Dialog>
  );
}

function Plan({ plan: { count, oldest, newest, routes } }: { readonly plan: EventReplayPlan }) {
  if (count === 0) return <p role="status">No events match.</p>;
  return (
    <div role="status">
      <p>
        {count} events, from <Time at={oldest} as="exact" /> to <Time at={newest} as="exact" />. They are
        delivered oldest first, at the rate of their routes.
      </p>
      <ul>
        {routes.map(({ route, count: own }) => (
          <li key={route}>
            {route}: {own}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Progress({
  replay: { state, total, queued, skipped, results },
}: {
  readonly replay: EventReplayDetail;
}) {
  return (
    <div role="status">
      <progress value={queued + skipped} max={total} aria-label="Progress" />
      <p>
        {state}: {queued} of {total} queued, {skipped} skipped. {results.delivered} delivered,{" "}
        {results.failed} failed, {results.cancelled} cancelled, {results.waiting} waiting.
      </p>
    </div>
  );
}
