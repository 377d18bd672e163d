import { PageHeader } from "../../components/page-header.tsx";
import { useHasPermission } from "../../session/session.ts";
import { AnalyticsTab } from "./analytics/analytics-tab.tsx";
import { UsageByTag } from "./analytics/usage-by-tag.tsx";
import { UsageByWhom } from "./analytics/usage-by-whom.tsx";

/** Usage of all gateways of the account. */
export function UsagePage() {
  const canReadTags = useHasPermission("tags.read");
  return (
    <>
      <PageHeader title="Usage">Calls, errors, tokens and cost of all gateways in this account.</PageHeader>
      <AnalyticsTab gatewayId={null} />
      <UsageByWhom gatewayId={null} />
      {canReadTags && <UsageByTag />}
    </>
  );
}
