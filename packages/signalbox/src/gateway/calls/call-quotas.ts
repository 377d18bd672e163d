/** Tells the call log how many rows each gateway may keep: the settings `log_management` and `log_management_strategy`. */
import type { CallLog, CallQuota } from "../../storage/ports/call-log.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";

/** For every gateway there is and every change to come; call it once the gateways are loaded. */
export function keepQuotas(gateways: Gateways, callLog: Pick<CallLog, "setQuota">): void {
  const apply = (gateway: Gateway) =>
    callLog.setQuota({ accountId: gateway.accountId, gatewayId: gateway.id }, quotaOf(gateway));
  for (const gateway of gateways.all()) apply(gateway);
  gateways.listen({ onChanged: apply, onDeleted: () => undefined });
}

function quotaOf({ settings }: Gateway): CallQuota | null {
  if (settings.log_management === null) return null;
  return {
    maxRows: settings.log_management,
    // Without a strategy the newest calls are the ones worth keeping.
    whenFull: settings.log_management_strategy === "STOP_INSERTING" ? "stop" : "deleteOldest",
  };
}
