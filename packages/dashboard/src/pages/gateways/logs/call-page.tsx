import type { ReactNode } from "react";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { DetailList } from "../../../components/detail-list.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { StatTile, StatTiles } from "../../../components/stat-tile.tsx";
import { bytes, count, duration, money } from "../../../format/number.ts";
import { exactTime } from "../../../format/time.ts";
import { read, request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../../session/session.ts";
import { CallGuardrails } from "../../guardrails/call-guardrails.tsx";
import { BodyPanel } from "./body-panel.tsx";
import type { Call } from "./call.ts";
import { CallReplay, CopyAsCurl, NeighbourLinks, OpenInPlayground } from "./call-work.tsx";
import { CallFailure } from "./call-failure.tsx";
import { parseMetadata } from "./call-metadata.ts";
import { StatusBadge } from "./call-table.tsx";
import { addressOf } from "../whom/whom-kind.ts";
import { CallWaterfall } from "./call-waterfall.tsx";
import { RelatedCalls, sessionOf } from "./related-calls.tsx";

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
            <OpenInPlayground gatewayId={gatewayId} path={path} />
            <CopyAsCurl key={path} path={path} />
            <NeighbourLinks gatewayId={gatewayId} path={path} />
          </div>
        }
      >
        {callId}
      </PageHeader>
      <ResourceView of={call}>
        {(value) => (
          <div className="stack">
            {!value.success && <CallFailure path={path} call={value} />}
            <CallTiles call={value} />
            <CallWaterfall call={value} />
            <CallGuardrails call={value} />
            <div className="columns">
              <BodyPanel title="Request" path={`${path}/request`} contentType={value.request_content_type} />
              <BodyPanel
                title="Response"
                path={`${path}/response`}
                contentType={value.response_content_type}
              />
            </div>
            <Feedback path={path} call={value} onChange={call.reload} />
            <section className="panel" aria-label="Details">
              <DetailList items={detailsOf(value, page)} />
            </section>
            <RelatedCalls gatewayId={gatewayId} call={value} />
            <CallReplay key={path} gatewayId={gatewayId} path={path} />
          </div>
        )}
      </ResourceView>
    </>
  );
}

function CallTiles({ call }: { readonly call: Call }) {
  const written =
    call.tokens_in_cache_write === 0 ? "" : `, ${count(call.tokens_in_cache_write)} written to cache`;
  return (
    <StatTiles label="Measurements">
      <StatTile
        label="Duration"
        value={duration(call.duration)}
        note={`first byte after ${duration(call.time_to_first_byte)}`}
      />
      <StatTile
        label="Input tokens"
        value={count(call.tokens_in)}
        note={`${count(call.tokens_in_cached)} cached${written}`}
      />
      <StatTile
        label="Output tokens"
        value={count(call.tokens_out)}
        note={`${count(call.tokens_out_reasoning)} reasoning`}
      />
      <StatTile
        label="Cost"
        value={money(call.cost)}
        note={
          call.cost === undefined
            ? "unknown price"
            : call.custom_cost
              ? "stated by the caller"
              : "from the price list"
        }
      />
    </StatTiles>
  );
}

type Page = ReturnType<typeof useAccountPaths>["page"];

function detailsOf(call: Call, page: Page): (readonly [string, ReactNode])[] {
  const dialects =
    call.client_dialect === undefined || call.client_dialect === call.provider_dialect
      ? []
      : [["Translated", `${call.client_dialect} → ${call.provider_dialect ?? ""}`] as const];
  return [
    ["Time", exactTime(Date.parse(call.created_at))],
    ["Provider", call.provider],
    ["Model", call.model === "" ? "none" : call.model],
    ["Path", `${call.method} ${call.path}`],
    ["Request size", bytes(call.request_size)],
    ["Response size", bytes(call.response_size)],
    [
      "Token",
      call.token_id === undefined ? (
        "none"
      ) : (
        <Link key="token" to={page("tokens", call.token_id)}>
          {call.token_id}
        </Link>
      ),
    ],
    ["User agent", call.user_agent === "" ? "unknown" : call.user_agent],
    ...dialects,
    ...(call.dropped === undefined ? [] : [["Left out of the request", call.dropped] as const]),
    ...Object.entries(parseMetadata(call.metadata)).map(
      ([key, value]) =>
        [`Metadata: ${key}`, <Entry key={key} name={key} value={value} call={call} page={page} />] as const,
    ),
  ];
}

interface EntryProps {
  readonly name: string;
  readonly value: string;
  readonly call: Call;
  readonly page: Page;
}

/** A user and a session have pages. */
function Entry({ name, value, call, page }: EntryProps) {
  if (value === "") return value;
  if (name === "user") return <Link to={addressOf(page, { kind: "user", key: name }, value)}>{value}</Link>;
  if (sessionOf(call.metadata)?.[0] !== name) return value;
  return <Link to={addressOf(page, { kind: "session", key: name }, value)}>{value}</Link>;
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
