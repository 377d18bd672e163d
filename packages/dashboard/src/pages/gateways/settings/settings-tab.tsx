import { useMay } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";
import { BehaviourForm } from "./behaviour-form.tsx";
import { DeleteGateway } from "./delete-gateway.tsx";
import { SetupSteps } from "./setup-steps.tsx";

export function SettingsTab({
  gateway,
  onChange,
}: {
  readonly gateway: Gateway;
  readonly onChange: () => void;
}) {
  const mayEdit = useMay("gateway.edit");
  return (
    <div className="stack">
      <SetupSteps gateway={gateway} onChange={onChange} />
      <BehaviourForm key={gateway.modified_at} gateway={gateway} onChange={onChange} />
      {mayEdit && !gateway.is_default && <DeleteGateway gateway={gateway} />}
    </div>
  );
}
