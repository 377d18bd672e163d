import { useEffect, useRef } from "react";
import { DetailList } from "../../../components/detail-list.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { Time } from "../../../components/time.tsx";
import { count, duration, money } from "../../../format/number.ts";
import { read } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { BodyPanel } from "./body-panel.tsx";
import { CallFailure } from "./call-failure.tsx";
import { StatusBadge } from "./call-table.tsx";
import type { Call } from "./call.ts";

interface CallPanelProps {
  readonly gatewayId: string;
  readonly callId: string;
  readonly onClose: () => void;
}

/** A call beside the list: what was asked, what was answered, and the figures. Escape closes it. */
export function CallPanel({ gatewayId, callId, onClose }: CallPanelProps) {
  const { api, page } = useAccountPaths();
  const path = api("ai-gateway", "gateways", gatewayId, "logs", callId);
  const call = useResource(path, (signal) => read<Call>(path, signal));
  useEscape(onClose);
  return (
    <aside className="panel log-panel" aria-label="Selected call">
      <header className="row spread">
        <span className="row">
          <h2>Call</h2>
          {call.value !== undefined && <StatusBadge call={call.value} />}
        </span>
        <span className="row">
          <Link className="button button-small" to={page("gateways", gatewayId, "logs", callId)}>
            Open call
          </Link>
          <button
            type="button"
            className="button button-small button-quiet"
            onClick={onClose}
            aria-label="Close"
          >
            ✕
          </button>
        </span>
      </header>
      <ResourceView of={call}>
        {(value) => (
          <>
            {!value.success && <CallFailure path={path} call={value} />}
            <DetailList
              items={[
                ["Time", <Time key="time" at={value.created_at} as="exact" />],
                ["Model", `${value.provider}/${value.model}`],
                ["Duration", duration(value.duration)],
                ["First byte", duration(value.time_to_first_byte)],
                ["Tokens", `${count(value.tokens_in)} → ${count(value.tokens_out)}`],
                ["Cost", money(value.cost)],
              ]}
            />
            <BodyPanel title="Request" path={`${path}/request`} contentType={value.request_content_type} />
            <BodyPanel title="Response" path={`${path}/response`} contentType={value.response_content_type} />
          </>
        )}
      </ResourceView>
    </aside>
  );
}

function useEscape(onClose: () => void): void {
  const newest = useRef(onClose);
  newest.current = onClose;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      // Escape closes what is above the panel first.
      const isBelow = document.querySelector("dialog[open], :popover-open") !== null;
      if (event.key === "Escape" && !isBelow) newest.current();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}
