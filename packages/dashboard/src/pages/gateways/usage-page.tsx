import { PageHeader } from "../../components/page-header.tsx";
import { useHasPermission } from "../../session/session.ts";
import { AnalyticsTab } from "./analytics/analytics-tab.tsx";
import { UsageByTag } from "./analytics/usage-by-tag.tsx";
import { GatewaysTabs } from "./gateways-tabs.tsx";

/** Usage of all the account's gateways together. */
export function UsagePage() {
  const canReadTags = useHasPermission("tags.read");
  return (
    <>
      <PageHeader title="Usage">What all gateways of the account did, and what it cost.</PageHeader>
      <GatewaysTabs current="usage" />
      <AnalyticsTab gatewayId={null} />
      {canReadTags && <UsageByTag />}
    </>
  );
}
