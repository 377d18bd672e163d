import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { request } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import type { Gateway } from "../gateways/gateway.ts";

const HOUR_MS = 3_600_000;

interface PlaygroundCredentialsProps {
  readonly gateway: Gateway;
  readonly token: string;
  readonly onToken: (token: string) => void;
  readonly providerKey: string;
  readonly onProviderKey: (key: string) => void;
}

/** The token of the gateway and, if the gateway has none stored, the key of the provider. Both stay in the memory of this page. */
export function PlaygroundCredentials(props: PlaygroundCredentialsProps) {
  const { gateway, token, onToken, providerKey, onProviderKey } = props;
  const { api } = useAccountPaths();
  const canEdit = useHasPermission("gateway.edit");
  const canRun = useHasPermission("gateway.run");
  // Only at first: it must not close while a token is typed.
  const [isOpenAtFirst] = useState(gateway.authentication && token === "");
  const create = useAction(async () => {
    const body = { name: "playground", expires_at: new Date(Date.now() + HOUR_MS).toISOString() };
    const path = api("ai-gateway", "gateways", gateway.id, "tokens");
    onToken((await request<{ token: string }>(path, { method: "POST", body })).result.token);
  });
  return (
    <details className="panel" open={isOpenAtFirst}>
      <summary>Credentials</summary>
      <div className="stack">
        <div className="form-grid">
          <Field
            label={gateway.authentication ? "Gateway token" : "Gateway token (optional)"}
            hint={
              gateway.authentication
                ? "This gateway accepts only calls with a token."
                : "Without a token, the limits of tokens do not apply."
            }
          >
            <input
              type="password"
              autoComplete="off"
              spellCheck={false}
              value={token}
              placeholder="sbx_…"
              onChange={({ target }) => onToken(target.value.trim())}
            />
          </Field>
          <Field
            label="Provider key (optional)"
            hint="Only if the gateway has no stored key for the provider. Echo needs none."
          >
            <input
              type="password"
              autoComplete="off"
              spellCheck={false}
              value={providerKey}
              placeholder="sk-…"
              onChange={({ target }) => onProviderKey(target.value.trim())}
            />
          </Field>
        </div>
        {canEdit && canRun && (
          <div className="row">
            <Button size="small" isBusy={create.isBusy} onClick={() => void create.run()}>
              Create a token for one hour
            </Button>
            <span className="muted small">It may call this gateway only, and is listed under Tokens.</span>
          </div>
        )}
        {create.error !== null && <ErrorNotice error={create.error} />}
        <p className="muted small">
          Token and key stay in the memory of this page; they are not stored and are gone after a reload.
        </p>
      </div>
    </details>
  );
}
