import { useAgent } from "@signalbox/client/react";
import { useState } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import { useScope } from "../../../session/session.ts";
import { ConnectionBadge } from "../connection-badge.tsx";

/** The current state of the instance, updated over a WebSocket. */
export function StateTab({ agent, name }: { readonly agent: string; readonly name: string }) {
  const { accountId } = useScope();
  const [updates, setUpdates] = useState(0);
  const { state, status, error } = useAgent({
    agent,
    name,
    account: accountId,
    onStateUpdate: () => setUpdates((n) => n + 1),
  });
  const changes = Math.max(0, updates - 1);
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
          <ConnectionBadge status={status} />
        </span>
      </div>
      {status === "closed" && error !== null && <p className="notice notice-bad">{error.message}</p>}
      {state === undefined ? (
        <p className="muted">
          {status === "open"
            ? "This instance has no state. An agent sets its state with setState()."
            : "Connecting…"}
        </p>
      ) : (
        // A new key restarts the highlight.
        <div key={updates} className={changes > 0 ? "flash" : ""} data-testid="live-state">
          <CodeBlock label="State" code={JSON.stringify(state, null, 2)} />
        </div>
      )}
    </section>
  );
}
