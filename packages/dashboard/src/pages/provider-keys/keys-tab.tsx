import { useId } from "react";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Switch } from "../../components/switch.tsx";
import { useAction } from "../../http/use-action.ts";
import { useAccount, useHasPermission } from "../../session/session.ts";
import type { Gateway } from "../gateways/gateway.ts";
import { KeysView } from "./keys-view.tsx";

interface KeysTabProps {
  readonly gateway: Gateway;
  readonly onChange: () => void;
}

/** The provider keys of one gateway, and who may spend them. */
export function KeysTab({ gateway, onChange }: KeysTabProps) {
  return (
    <div className="stack">
      {!gateway.authentication && <AnonymousKeys gateway={gateway} onChange={onChange} />}
      <KeysView gatewayId={gateway.id} />
    </div>
  );
}

function AnonymousKeys({ gateway, onChange }: KeysTabProps) {
  const account = useAccount();
  const canEdit = useHasPermission("gateway.edit");
  const labelId = useId();
  const toggle = useAction(async (isOn: boolean) => {
    await account.gateways.update(gateway.id, { allow_anonymous_keys: isOn });
    onChange();
  });
  return (
    <section className="panel" aria-label="Calls without a token">
      <div className="row">
        <Switch
          isOn={gateway.allow_anonymous_keys}
          labelledBy={labelId}
          isDisabled={!canEdit || toggle.isBusy}
          onChange={(isOn) => void toggle.run(isOn)}
        />
        <strong id={labelId}>Use stored keys for calls without a token</strong>
      </div>
      <p role="status" className={`notice ${gateway.allow_anonymous_keys ? "notice-warn" : "notice-good"}`}>
        {gateway.allow_anonymous_keys
          ? "On: this gateway is unauthenticated, so anyone who can reach it can spend its stored keys."
          : "Off: this gateway is unauthenticated, and its stored keys are used only for calls with a valid token."}
      </p>
      {toggle.error !== null && <ErrorNotice error={toggle.error} />}
    </section>
  );
}
