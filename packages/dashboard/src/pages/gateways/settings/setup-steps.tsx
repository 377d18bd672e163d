/** The steps to turn on authentication without rejecting existing clients: create a token, configure the clients, turn it on. */
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
  // In memory only, so that the client code can contain the token while the page is open.
  const [token, setToken] = useState<string | null>(null);
  return (
    <section className="panel" aria-labelledby="setup-title">
      <h2 id="setup-title">Authentication</h2>
      <p className="muted">
        An authenticated gateway accepts only calls with a gateway token. Follow these steps in order to avoid
        interrupting existing clients.
      </p>
      <ol className="steps">
        <li>
          <h3>Open the gateway settings</h3>
          <p className="muted">
            Done: these are the settings of <code>{gateway.id}</code>.
          </p>
        </li>
        <li>
          <h3>Create an authentication token</h3>
          <GatewayTokenStep gateway={gateway} canEdit={canEdit} token={token} onToken={setToken} />
        </li>
        <li>
          <h3>Configure your clients to send the token</h3>
          <ClientSnippets gateway={gateway} token={token} />
        </li>
        <li>
          <h3>Turn on authentication</h3>
          <AuthenticationSwitch gateway={gateway} canEdit={canEdit} onChange={onChange} />
        </li>
      </ol>
    </section>
  );
}
