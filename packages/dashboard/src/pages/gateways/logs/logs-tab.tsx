import { Link } from "../../../routing/link.tsx";
import { useAccountPaths } from "../../../session/session.ts";
import { CallList } from "./call-list.tsx";

export function LogsTab({ gatewayId }: { readonly gatewayId: string }) {
  const { page } = useAccountPaths();
  return (
    <CallList
      gatewayId={gatewayId}
      empty={
        <p>
          Send a call from the <Link to={page("gateways", gatewayId, "playground")}>playground</Link>, or with
          the client code on the <Link to={page("gateways", gatewayId, "settings")}>Settings tab</Link>. It
          appears here when its response is complete. Calls rejected by authentication are not logged.
        </p>
      }
    />
  );
}
