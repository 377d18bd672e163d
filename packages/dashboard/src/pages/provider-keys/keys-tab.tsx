import type { Gateway } from "../gateways/gateway.ts";
import { KeysView } from "./keys-view.tsx";

/** The provider keys of one gateway. */
export function KeysTab({ gateway }: { readonly gateway: Gateway }) {
  return (
    <div className="stack">
      {!gateway.authentication && (
        <p className="notice notice-warn">
          {gateway.allow_anonymous_keys
            ? "Anyone who can reach this gateway can spend its stored keys: it is unauthenticated, and allow_anonymous_keys is set."
            : "This gateway is unauthenticated. Stored keys are used only for calls with a valid token."}
        </p>
      )}
      <KeysView gatewayId={gateway.id} />
    </div>
  );
}
