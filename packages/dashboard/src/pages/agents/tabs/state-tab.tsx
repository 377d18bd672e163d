import { useEffect, useRef, useState } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import { Loading } from "../../../components/loading.tsx";
import type { Resource } from "../../../http/use-resource.ts";
import type { InstanceDetail } from "../agent.ts";
import { useActivity } from "../use-activity.ts";
import { WatchBadge } from "../watch-badge.tsx";

interface StateTabProps {
  readonly instance: Resource<InstanceDetail>;
  /** Of the event stream. */
  readonly eventsPath: string;
}

/** The stored state of the instance. It is read again when the instance reports a change. */
export function StateTab({ instance, eventsPath }: StateTabProps) {
  const [changes, setChanges] = useState(0);
  const readAgain = useReadAgain(instance);
  const status = useActivity(eventsPath, (event) => {
    if (event === null) readAgain();
    else if (event.type === "state") {
      setChanges((n) => n + 1);
      readAgain();
    }
  });
  const { value } = instance;
  const text = value?.state === null ? undefined : JSON.stringify(value?.state, null, 2);
  return (
    <section className="panel" aria-labelledby="state-title">
      <div className="row spread">
        <h2 id="state-title">State</h2>
        <span className="row">
          <span className="muted small" role="status">
            {changes === 0
              ? "no changes"
              : `${changes} ${changes === 1 ? "change" : "changes"} since you opened this page`}
          </span>
          <WatchBadge status={status} />
        </span>
      </div>
      {value === undefined && <Loading />}
      {value !== undefined &&
        (text === undefined ? (
          <p className="muted">This instance has no state. An agent sets its state with setState().</p>
        ) : (
          // A new key restarts the highlight.
          <div key={text} className={changes > 0 ? "flash" : ""} data-testid="live-state">
            <CodeBlock label="State" code={text} />
          </div>
        ))}
    </section>
  );
}

/** Reads the instance after a running request has ended: a request that started before the change may return the state before it. */
function useReadAgain({ isLoading, reload }: Resource<unknown>): () => void {
  const [wanted, setWanted] = useState(0);
  const read = useRef(0);
  useEffect(() => {
    if (isLoading || read.current === wanted) return;
    read.current = wanted;
    reload();
  }, [isLoading, wanted, reload]);
  return () => setWanted((n) => n + 1);
}
