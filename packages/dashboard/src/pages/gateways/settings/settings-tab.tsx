import { useHasPermission } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";
import { GatewaySettingsForm } from "./gateway-settings-form.tsx";
import { DeleteGateway } from "./delete-gateway.tsx";
import { TelemetryForm } from "./telemetry-form.tsx";
import { SetupSteps } from "./setup-steps.tsx";

export function SettingsTab({
  gateway,
  onChange,
}: {
  readonly gateway: Gateway;
  readonly onChange: () => void;
}) {
  const canEdit = useHasPermission("gateway.edit");
  return (
    <div className="stack">
      <SetupSteps gateway={gateway} onChange={onChange} />
      <GatewaySettingsForm gateway={gateway} onChange={onChange} />
      <TelemetryForm
        key={JSON.stringify([gateway.otel, gateway.otel_content])}
        gateway={gateway}
        onChange={onChange}
      />
      {canEdit && !gateway.is_default && <DeleteGateway gateway={gateway} />}
    </div>
  );
}
