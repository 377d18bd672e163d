/** The order in which a gateway becomes authenticated without locking anybody out: token first, clients next, the switch last. */
import { useState } from "react";
import { useHasPermission } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";
import { AuthenticationSwitch } from "./authentication-switch.tsx";
import { ClientSnippets } from "./client-snippets.tsx";
import { GatewayTokenStep } from "./gateway-token-step.tsx";

export function SetupSteps({
  gateway,
  onChange,
}: {
  readonly gateway: Gateway;
  readonly onChange: () => void;
}) {
  const canEdit = useHasPermission("gateway.edit");
  // Kept as long as this page is open, so that the snippets can be pasted as they are; never stored.
  const [token, setToken] = useState<string | null>(null);
  return (
    <section className="panel" aria-labelledby="setup-title">
      <h2 id="setup-title">Authentication</h2>
      <p className="muted">
        An authenticated gateway answers only calls that carry a gateway token. Walk the steps in this order,
        and no client is cut off on the way.
      </p>
      <ol className="steps">
        <li>
          <h3>Open the gateway's settings</h3>
          <p className="muted">
            You are here: gateway <code>{gateway.id}</code>.
          </p>
        </li>
        <li>
          <h3>Create an authentication token</h3>
          <GatewayTokenStep gateway={gateway} canEdit={canEdit} token={token} onToken={setToken} />
        </li>
        <li>
          <h3>Configure your clients to send it</h3>
          <ClientSnippets gateway={gateway} token={token} />
        </li>
        <li>
          <h3>Turn authentication on</h3>
          <AuthenticationSwitch gateway={gateway} canEdit={canEdit} onChange={onChange} />
        </li>
      </ol>
    </section>
  );
}
