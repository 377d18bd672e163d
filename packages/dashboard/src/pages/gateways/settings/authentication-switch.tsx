import { useId } from "react";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Switch } from "../../../components/switch.tsx";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { useAccountPaths } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";

interface AuthenticationSwitchProps {
  readonly gateway: Gateway;
  readonly canEdit: boolean;
  readonly onChange: () => void;
}

export function AuthenticationSwitch({ gateway, canEdit, onChange }: AuthenticationSwitchProps) {
  const { api } = useAccountPaths();
  const labelId = useId();
  const toggle = useAction(async (authentication: boolean) => {
    await request(api("ai-gateway", "gateways", gateway.id), { method: "PUT", body: { authentication } });
    onChange();
  });
  return (
    <div className="stack">
      <div className="row">
        <Switch
          isOn={gateway.authentication}
          labelledBy={labelId}
          isDisabled={!canEdit || toggle.isBusy}
          onChange={(isOn) => void toggle.run(isOn)}
        />
        <strong id={labelId}>Authenticated Gateway</strong>
      </div>
      <p role="status" className={`notice ${gateway.authentication ? "notice-good" : "notice-warn"}`}>
        {gateway.authentication
          ? "On: calls without a valid gateway token are rejected with status 401 and are not logged."
          : "Off: anyone who can reach the gateway URL can send calls. The limits of a token bind only calls that send it."}
      </p>
      {toggle.error !== null && <ErrorNotice error={toggle.error} />}
    </div>
  );
}
