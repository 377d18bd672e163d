import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { DetailList } from "../../../components/detail-list.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { bytes, count, duration, money } from "../../../format/number.ts";
import { read, request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useAccountPaths, useHasPermission } from "../../../session/session.ts";
import { BodyPanel } from "./body-panel.tsx";
import type { Call } from "./call.ts";
import { CallCommand, CallReplay, NeighbourLinks } from "./call-work.tsx";
import { StatusBadge } from "./logs-tab.tsx";

export function CallPage({ gatewayId, callId }: { readonly gatewayId: string; readonly callId: string }) {
  const { api, page } = useAccountPaths();
  const path = api("ai-gateway", "gateways", gatewayId, "logs", callId);
  const call = useResource(path, (signal) => read<Call>(path, signal));
  return (
    <>
      <PageHeader
        title="Call"
        crumbs={[
          { title: "Gateways", to: page("gateways") },
          { title: gatewayId, to: page("gateways", gatewayId) },
          { title: "Logs", to: page("gateways", gatewayId, "logs") },
        ]}
        actions={
          <div className="row">
            {call.value !== undefined && <StatusBadge call={call.value} />}
            <NeighbourLinks gatewayId={gatewayId} path={path} />
          </div>
        }
      >
        {callId}
      </PageHeader>
      <ResourceView of={call}>
        {(value) => (
          <div className="stack">
            <section className="panel" aria-label="Details">
              <DetailList items={detailsOf(value)} />
            </section>
            <div className="columns">
              <BodyPanel title="Request" path={`${path}/request`} contentType={value.request_content_type} />
              <BodyPanel
                title="Response"
                path={`${path}/response`}
                contentType={value.response_content_type}
              />
            </div>
            <Feedback path={path} call={value} onChange={call.reload} />
            <div className="columns">
              <CallReplay key={path} gatewayId={gatewayId} path={path} />
              <CallCommand key={path} path={path} />
            </div>
          </div>
        )}
      </ResourceView>
    </>
  );
}

function detailsOf(call: Call): (readonly [string, string])[] {
  const cachedTokens = call.tokens_in_cached === 0 ? "" : ` (${count(call.tokens_in_cached)} cached)`;
  const reasoning = call.tokens_out_reasoning === 0 ? "" : ` (${count(call.tokens_out_reasoning)} reasoning)`;
  return [
    ["Time", new Date(call.created_at).toLocaleString()],
    ["Provider", call.provider],
    ["Model", call.model === "" ? "none" : call.model],
    ["Path", `${call.method} ${call.path}`],
    ["Input tokens", count(call.tokens_in) + cachedTokens],
    ["Output tokens", count(call.tokens_out) + reasoning],
    ["Cost", money(call.cost)],
    ["Duration", duration(call.duration)],
    ["Time to first byte", duration(call.time_to_first_byte)],
    ["Request size", bytes(call.request_size)],
    ["Response size", bytes(call.response_size)],
    ["Authenticated", call.authentication ? "yes" : "no"],
    ["User agent", call.user_agent === "" ? "unknown" : call.user_agent],
    ...Object.entries(parseMetadata(call.metadata)).map(
      ([key, value]) => [`Metadata: ${key}`, String(value)] as const,
    ),
  ];
}

function parseMetadata(metadata: string | undefined): Record<string, unknown> {
  try {
    return metadata === undefined ? {} : (JSON.parse(metadata) as Record<string, unknown>);
  } catch {
    return {};
  }
}

interface FeedbackProps {
  readonly path: string;
  readonly call: Call;
  readonly onChange: () => void;
}

function Feedback({ path, call, onChange }: FeedbackProps) {
  const canEdit = useHasPermission("gateway.edit");
  const rate = useAction(async (feedback: 1 | -1) => {
    await request(path, {
      method: "PATCH",
      body: { feedback: call.feedback === feedback ? null : feedback },
    });
    onChange();
  });
  if (!canEdit) return null;
  const button = (feedback: 1 | -1, title: string) => (
    <Button
      size="small"
      kind={call.feedback === feedback ? "primary" : "plain"}
      aria-pressed={call.feedback === feedback}
      isBusy={rate.isBusy}
      onClick={() => void rate.run(feedback)}
    >
      {title}
    </Button>
  );
  return (
    <section className="row" aria-label="Feedback">
      <span className="muted">Rate this response:</span>
      {button(1, "Good")}
      {button(-1, "Bad")}
      {rate.error !== null && <ErrorNotice error={rate.error} />}
    </section>
  );
}
