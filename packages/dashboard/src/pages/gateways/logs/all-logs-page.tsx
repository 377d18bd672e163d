import { PageHeader } from "../../../components/page-header.tsx";
import { GatewaysTabs } from "../gateways-tabs.tsx";
import { CallList } from "./call-list.tsx";

/** Stored calls of all gateways. */
export function AllLogsPage() {
  return (
    <>
      <PageHeader title="Logs">Calls of all gateways in this account, newest first.</PageHeader>
      <GatewaysTabs current="logs" />
      <CallList gatewayId={null} empty={<p>Calls appear here when their responses are complete.</p>} />
    </>
  );
}
