import { Badge } from "../../components/badge.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { describeReason, STATUS_TONES } from "./delivery-status.ts";
import type { Delivery } from "./webhook.ts";

interface DeliveryTableProps {
  readonly rows: readonly Delivery[];
  readonly isOneSource?: boolean;
  /** The id of the delivery whose page shows the table. */
  readonly current?: string;
}

export function DeliveryTable({ rows, isOneSource = false, current }: DeliveryTableProps) {
  const { page } = useAccountPaths();
  const canReadAgents = useHasPermission("agents.read");
  return (
    <Table
      label="Deliveries"
      rows={rows}
      keyOf={(delivery) => delivery.id}
      columns={[
        {
          title: "Time",
          cell: (delivery) =>
            delivery.id === current ? (
              <strong className="nowrap">
                <Time at={delivery.received_at} /> (this one)
              </strong>
            ) : (
              <Link to={page("webhooks", "deliveries", delivery.id)} className="nowrap">
                <Time at={delivery.received_at} />
              </Link>
            ),
        },
        ...(isOneSource
          ? []
          : [
              {
                title: "Source",
                cell: (delivery: Delivery) => <span className="nowrap">{delivery.source}</span>,
              },
            ]),
        { title: "Status", cell: (delivery) => <Outcome delivery={delivery} /> },
        {
          title: "Event",
          cell: (delivery) =>
            delivery.type === null ? (
              <span className="muted">unknown</span>
            ) : (
              <span className="cell-line delivery-event" title={delivery.title ?? undefined}>
                <span className="nowrap">{delivery.type}</span>
                <span className="muted small cell-line-rest">{delivery.title}</span>
              </span>
            ),
        },
        {
          title: "Instance",
          cell: ({ instance, agent }) => {
            if (instance === null) return <span className="muted">none</span>;
            if (!canReadAgents) return instance;
            return (
              <div className="cell-name">
                <Link to={page("agents", agent, instance)}>{instance}</Link>
              </div>
            );
          },
        },
        { title: "Response", align: "end", isMinor: true, cell: (delivery) => delivery.http_status },
      ]}
    />
  );
}

/** The status, and why: the handler's error, or the reason of a rejection. */
function Outcome({ delivery }: { readonly delivery: Delivery }) {
  const { status, error, reason, replayed_at: replayedAt } = delivery;
  return (
    <span className="cell-line">
      <Badge tone={STATUS_TONES[status]}>{status}</Badge>
      {replayedAt !== null && (
        <Badge tone="good">
          replayed <Time at={replayedAt} />
        </Badge>
      )}
      {error === null ? (
        <span className="muted small cell-line-rest">{describeReason(reason)}</span>
      ) : (
        <span className="small cell-line-text" title={`${error.name}: ${error.message}`}>
          {error.name}: {error.message}
        </span>
      )}
    </span>
  );
}
