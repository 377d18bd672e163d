import { Badge } from "../../components/badge.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { describeReason, STATUS_TONES } from "./delivery-status.ts";
import type { Delivery } from "./webhook.ts";

interface DeliveryTableProps {
  readonly rows: readonly Delivery[];
  readonly isOneSource?: boolean;
}

export function DeliveryTable({ rows, isOneSource = false }: DeliveryTableProps) {
  const { page } = useAccountPaths();
  return (
    <Table
      label="Deliveries"
      rows={rows}
      keyOf={(delivery) => delivery.id}
      columns={[
        {
          title: "Time",
          cell: (delivery) => (
            <Link to={page("webhooks", "deliveries", delivery.id)} className="nowrap">
              <Time at={delivery.received_at} />
            </Link>
          ),
        },
        ...(isOneSource ? [] : [{ title: "Source", cell: (delivery: Delivery) => delivery.source }]),
        {
          title: "Status",
          cell: (delivery) => (
            <>
              <Badge tone={STATUS_TONES[delivery.status]}>{delivery.status}</Badge>{" "}
              <span className="muted small">{describeReason(delivery.reason)}</span>
            </>
          ),
        },
        {
          title: "Event",
          cell: (delivery) =>
            delivery.type === null ? (
              <span className="muted">unknown</span>
            ) : (
              <>
                {delivery.type} <span className="muted small">{delivery.title}</span>
              </>
            ),
        },
        {
          title: "Instance",
          cell: (delivery) =>
            delivery.instance === null ? (
              <span className="muted">none</span>
            ) : (
              <Link to={page("agents", delivery.agent, delivery.instance)}>{delivery.instance}</Link>
            ),
        },
        { title: "Response", align: "end", isMinor: true, cell: (delivery) => delivery.http_status },
      ]}
    />
  );
}
