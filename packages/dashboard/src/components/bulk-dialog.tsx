/** Replays many items in steps, with progress and a report. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { count } from "../format/number.ts";
import { useAction } from "../http/use-action.ts";
import { Link } from "../routing/link.tsx";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorNotice } from "./error-notice.tsx";

interface BulkFailure {
  readonly name: string;
  /** Page of the item. */
  readonly to: string;
  readonly error: string;
}

/** What one step has done. */
export interface BulkStep {
  readonly replayed: number;
  readonly failed: readonly BulkFailure[];
  readonly skipped: number;
  /** Continues; null at the end. */
  readonly cursor: string | null;
}

interface BulkDialogProps {
  readonly title: string;
  /** What will happen. */
  readonly children: ReactNode;
  readonly step: (cursor: string | undefined) => Promise<BulkStep>;
  /** The items in the plural, for the report. */
  readonly noun: string;
  /** Shown in the report, below the counts. */
  readonly after?: ReactNode;
  /** Called when the last step has ended, also with an error. */
  readonly onDone: () => void;
  readonly onClose: () => void;
}

const NONE: BulkStep = { replayed: 0, failed: [], skipped: 0, cursor: null };
const MAX_FAILURES = 50;

export function BulkDialog({ title, children, step, noun, after, onDone, onClose }: BulkDialogProps) {
  const [total, setTotal] = useState<BulkStep | null>(null);
  const [isDone, setDone] = useState(false);
  const isStopped = useRef(false);
  useEffect(() => {
    isStopped.current = false;
    return () => {
      isStopped.current = true;
    };
  }, []);
  const run = useAction(async () => {
    setTotal(NONE);
    try {
      let cursor: string | null | undefined;
      do {
        const done = await step(cursor ?? undefined);
        ({ cursor } = done);
        setTotal((before) => sum(before ?? NONE, done));
      } while (cursor !== null && !isStopped.current);
    } finally {
      setDone(true);
      onDone();
    }
  });
  return (
    <Dialog title={title} onClose={onClose}>
      {total === null && children}
      {total !== null && (
        <div className="stack" role="status" data-testid="bulk-report">
          <p>
            <strong>{count(total.replayed)}</strong> {noun} replayed
            {total.failed.length > 0 && (
              <>
                , <strong>{count(total.failed.length)}</strong> failed again
              </>
            )}
            {total.skipped > 0 && `, ${count(total.skipped)} skipped (not stored any more)`}
            {isDone ? "." : "…"}
          </p>
          {total.failed.length > 0 && (
            <ul className="panel-rows bulk-failures">
              {total.failed.slice(0, MAX_FAILURES).map(({ name, to, error }) => (
                <li key={name} className="panel-row">
                  <div className="panel-row-main">
                    <Link to={to}>{name}</Link>
                    <div className="error-text small">{error}</div>
                  </div>
                </li>
              ))}
            </ul>
          )}
          {isDone && after}
        </div>
      )}
      {run.error !== null && <ErrorNotice error={run.error} />}
      <div className="dialog-actions">
        <Button onClick={onClose}>{total === null ? "Cancel" : isDone ? "Close" : "Stop"}</Button>
        {total === null && (
          <Button kind="primary" isBusy={run.isBusy} onClick={() => void run.run()}>
            Replay
          </Button>
        )}
      </div>
    </Dialog>
  );
}

function sum(a: BulkStep, b: BulkStep): BulkStep {
  return {
    replayed: a.replayed + b.replayed,
    failed: [...a.failed, ...b.failed],
    skipped: a.skipped + b.skipped,
    cursor: b.cursor,
  };
}
