/** One recorded turn: its payload, the members of the state that it changed, and its error. Read when the row is opened. */
import { CodeBlock } from "../../../components/code-block.tsx";
import { JsonView } from "../../../components/json-view.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { read } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import type { RecordedTurn, RecordedTurnDetail } from "../agent.ts";

const REFERENCES: Readonly<Record<string, string>> = {
  delivery: "Event id",
  queue: "Queue item",
  schedule: "Schedule",
};

export function TurnDetails({ path, turn }: { readonly path: string; readonly turn: RecordedTurn }) {
  const detail = useResource(path, (signal) => read<RecordedTurnDetail>(path, signal));
  return (
    <div className="turn-details">
      <ResourceView of={detail}>
        {({ payload, state, stack, error }) => (
          <>
            {error !== null && (
              <div className="turn-part turn-part-wide">
                <h3>Error</h3>
                <p className="turn-error-text">{error}</p>
                {stack !== null && stack !== "" && (
                  <CodeBlock label={`Stack of turn ${turn.id}`} code={stack} />
                )}
              </div>
            )}
            <div className="turn-part">
              <h3>{turn.kind === "rpc" ? "Arguments" : "Payload"}</h3>
              {turn.reference !== null && (
                <p className="small">
                  <span className="muted">{REFERENCES[turn.kind] ?? "Id"} </span>
                  <code>{turn.reference}</code>
                </p>
              )}
              {payload === null ? (
                <p className="muted small">none</p>
              ) : (
                <JsonView label="Payload" value={parse(payload)} />
              )}
            </div>
            <div className="turn-part">
              <h3>State</h3>
              <StateDiff state={state} />
            </div>
          </>
        )}
      </ResourceView>
    </div>
  );
}

function StateDiff({ state }: { readonly state: RecordedTurnDetail["state"] }) {
  if (state === null) return <p className="muted small">not set</p>;
  const { changes, truncated } = state;
  if (changes.length === 0)
    return (
      <p className="muted small">
        {truncated ? "changed; too large to be compared" : "set to the same value"}
      </p>
    );
  return (
    <>
      <ul className="diff" aria-label="State changes">
        {changes.map(({ path, before, after }) => (
          <li key={path.join("\0")}>
            <code className="diff-path">{path.length === 0 ? "state" : path.join(".")}</code>
            {before !== null && (
              <del>
                <span className="visually-hidden">before: </span>
                <code>{before}</code>
              </del>
            )}
            {after !== null && (
              <ins>
                <span className="visually-hidden">after: </span>
                <code>{after}</code>
              </ins>
            )}
          </li>
        ))}
      </ul>
      {truncated && <p className="muted small">There are more changes.</p>}
    </>
  );
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}
