import { useEffect, useState } from "react";
import { StatTile, StatTiles } from "../../components/stat-tile.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { prettyJson } from "../../format/json.ts";
import { count, duration, money } from "../../format/number.ts";
import { read } from "../../http/api.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import type { Call } from "../gateways/logs/call.ts";
import { ResponseView } from "../gateways/logs/message-views.tsx";
import type { Outcome } from "./run-call.ts";

interface PlaygroundAnswerProps {
  readonly gatewayId: string;
  readonly outcome: Outcome;
  readonly isRunning: boolean;
}

export function PlaygroundAnswer({ gatewayId, outcome, isRunning }: PlaygroundAnswerProps) {
  const { page } = useAccountPaths();
  const [view, setView] = useState<"formatted" | "raw">("formatted");
  const call = useLoggedCall(gatewayId, outcome.isComplete ? outcome.logId : null);
  return (
    <div className="stack">
      {outcome.error !== null && (
        <p className="notice notice-bad" role="alert">
          <span>
            <strong>Status {outcome.status}</strong>: {outcome.error}
          </span>
        </p>
      )}
      {!isRunning && !outcome.isComplete && (
        <p className="notice notice-warn">Stopped before the end of the answer.</p>
      )}
      <Tabs
        label="Answer"
        tabs={[
          { name: "formatted", title: "Formatted" },
          { name: "raw", title: "Raw" },
        ]}
        current={view}
        onChange={setView}
      >
        {view === "formatted" ? (
          <ResponseView stream={outcome.stream} json={outcome.body} />
        ) : (
          <CodeBlock code={prettyJson(outcome.body)} label="Raw answer" isWrapped />
        )}
      </Tabs>
      <StatTiles label="Measurements of the call">
        <StatTile
          label="Latency"
          value={duration(outcome.durationMs)}
          note={outcome.firstMs === null ? "" : `first part after ${duration(outcome.firstMs)}`}
        />
        <StatTile
          label="Tokens"
          value={call === null ? "–" : count(call.tokens_in + call.tokens_out)}
          note={call === null ? "" : `${count(call.tokens_in)} in, ${count(call.tokens_out)} out`}
        />
        <StatTile label="Cost" value={call === null ? "–" : money(call.cost)} />
        <StatTile label="Cache" value={outcome.cacheStatus ?? "off"} />
      </StatTiles>
      {outcome.logId !== null && outcome.isComplete && (
        <p>
          <Link to={page("gateways", gatewayId, "logs", outcome.logId)}>Open the call in the log</Link>
        </p>
      )}
    </div>
  );
}

const ATTEMPTS = 6;
const PAUSE_MS = 400;

/** The row of the call, which is written some moments after its end; null until then, or if logs are off. */
function useLoggedCall(gatewayId: string, logId: string | null): Call | null {
  const { api } = useAccountPaths();
  const [call, setCall] = useState<Call | null>(null);
  const path = logId === null ? null : api("ai-gateway", "gateways", gatewayId, "logs", logId);
  useEffect(() => {
    setCall(null);
    if (path === null) return undefined;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const attempt = (left: number) => {
      read<Call>(path, abort.signal).then(setCall, () => {
        if (left > 0 && !abort.signal.aborted) timer = setTimeout(() => attempt(left - 1), PAUSE_MS);
      });
    };
    attempt(ATTEMPTS);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path]);
  return call;
}
