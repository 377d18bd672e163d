import { PageHeader } from "../../../components/page-header.tsx";
import { CallList } from "./call-list.tsx";

/** Stored calls of all gateways. */
export function AllLogsPage() {
  return (
    <>
      <PageHeader title="Logs">Calls of all gateways in this account, newest first.</PageHeader>
      <CallList gatewayId={null} empty={<p>Calls appear here when their responses are complete.</p>} />
    </>
  );
}
