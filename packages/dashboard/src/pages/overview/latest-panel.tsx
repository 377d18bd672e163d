import type { Delivery, FoundCall } from "@signalbox/client";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Time } from "../../components/time.tsx";
import { duration } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { STATUS_TONES } from "../webhooks/delivery-status.ts";
import { NothingHere, Panel } from "./panel.tsx";
import type { Access } from "./use-access.ts";

const MAX_ROWS = 10;
const REFRESH_MS = 2500;

interface Happening {
  readonly id: string;
  readonly at: string;
  readonly to: string;
  readonly tone: Tone;
  readonly status: string;
  readonly what: string;
  readonly note: string;
}

/** The last calls and deliveries, as they happen. */
export function LatestPanel({ access }: { readonly access: Access }) {
  const { api, page } = useAccountPaths();
  const callsPath = withQuery(api("ai-gateway", "logs"), {
    gateway_id: access.gatewayId ?? "",
    limit: MAX_ROWS,
  });
  const deliveriesPath = withQuery(api("webhooks", "deliveries"), { limit: MAX_ROWS });
  const latest = useResource(
    `latest ${callsPath}`,
    async (signal) => {
      const [calls, deliveries] = await Promise.all([
        access.usage ? read<FoundCall[]>(callsPath, signal) : [],
        access.webhooks ? read<Delivery[]>(deliveriesPath, signal) : [],
      ]);
      return [
        ...calls.map((call) => ofCall(call, page)),
        ...deliveries.map((delivery) => ofDelivery(delivery, page)),
      ]
        .sort((a, b) => (a.at < b.at ? 1 : -1))
        .slice(0, MAX_ROWS);
    },
    { refreshMs: REFRESH_MS },
  );
  const all =
    access.gatewayId === null
      ? access.usage
        ? page("logs")
        : page("webhooks", "deliveries")
      : page("gateways", access.gatewayId);
  return (
    <Panel
      id="latest"
      title={access.webhooks ? "Latest calls and deliveries" : "Latest calls"}
      to={all}
      of={latest}
    >
      {(rows) =>
        rows.length === 0 ? (
          <NothingHere>Calls and deliveries appear here as they happen.</NothingHere>
        ) : (
          <ul className="latest">
            {rows.map(({ id, at, to, tone, status, what, note }) => (
              <li key={id}>
                <Link to={to} className="row-link">
                  <Time at={at} as="clock" />
                </Link>
                <Badge tone={tone}>{status}</Badge>
                <span className="latest-what">{what}</span>
                <span className="muted small">{note}</span>
              </li>
            ))}
          </ul>
        )
      }
    </Panel>
  );
}

type Page = ReturnType<typeof useAccountPaths>["page"];

function ofCall(call: FoundCall, page: Page): Happening {
  return {
    id: call.id,
    at: call.created_at,
    to: page("gateways", call.gateway_id, "logs", call.id),
    tone: call.success ? "good" : "bad",
    status: String(call.status_code),
    what: call.prompt === null ? call.model : `${call.model}  ${call.prompt}`,
    note: duration(call.duration),
  };
}

function ofDelivery(delivery: Delivery, page: Page): Happening {
  return {
    id: delivery.id,
    at: delivery.received_at,
    to: page("webhooks", "deliveries", delivery.id),
    tone: STATUS_TONES[delivery.status],
    status: delivery.status,
    what: `${delivery.source}  ${delivery.title ?? delivery.type ?? ""}`,
    note: duration(delivery.duration_ms),
  };
}
