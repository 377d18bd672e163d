import type { DeliverySummary } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { count } from "../../format/number.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";

interface DeliveryCountsProps {
  /** Undefined while it is being read. */
  readonly summary: DeliverySummary | undefined;
  readonly source: string;
}

/** How many deliveries of a source failed, were rejected and were accepted, with links to those that need attention. */
export function DeliveryCounts({ summary, source }: DeliveryCountsProps) {
  const { page } = useAccountPaths();
  if (summary === undefined) return <span className="muted">–</span>;
  const counts = summary.sources.find((one) => one.source === source);
  if (counts === undefined) return <span className="muted">none</span>;
  const { failing, accepted, duplicate } = counts;
  const rejected = counts.rejected + counts.unlisted_rejected;
  const list = (status: string) =>
    `${page("webhooks", "deliveries")}?source=${encodeURIComponent(source)}&status=${status}`;
  return (
    <span className="badges">
      {failing > 0 && (
        <Link to={list("failing")}>
          <Badge tone="bad">{count(failing)} failed</Badge>
        </Link>
      )}
      {rejected > 0 && (
        <Link to={list("rejected")}>
          <Badge tone="warn">{count(rejected)} rejected</Badge>
        </Link>
      )}
      {accepted + duplicate > 0 && <Badge tone="good">{count(accepted + duplicate)} accepted</Badge>}
    </span>
  );
}
