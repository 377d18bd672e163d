import { type FormEvent, useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ErrorNotice } from "../../../components/error-notice.tsx";
import { Field } from "../../../components/field.tsx";
import { request } from "../../../http/api.ts";
import { useAction } from "../../../http/use-action.ts";
import { Link } from "../../../routing/link.tsx";
import { useAccountPaths, useHasPermission } from "../../../session/session.ts";
import { ExpiryField } from "../../tokens/expiry-field.tsx";
import { NewTokenNotice } from "../../tokens/new-token-notice.tsx";
import type { NewToken } from "../../tokens/token.ts";
import type { Gateway } from "../gateway.ts";

interface GatewayTokenStepProps {
  readonly gateway: Gateway;
  readonly canEdit: boolean;
  readonly token: string | null;
  readonly onToken: (token: string) => void;
}

export function GatewayTokenStep({ gateway, canEdit, token, onToken }: GatewayTokenStepProps) {
  const { api, page } = useAccountPaths();
  const canListTokens = useHasPermission("tokens.edit");
  const [name, setName] = useState("");
  const canRun = useHasPermission("gateway.run");
  const [expiresAt, setExpiresAt] = useState<string | null>(null);
  const create = useAction(async () => {
    const { result } = await request<NewToken>(api("ai-gateway", "gateways", gateway.id, "tokens"), {
      method: "POST",
      body: { ...(name === "" ? {} : { name }), expires_at: expiresAt },
    });
    onToken(result.token);
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void create.run();
  };
  return (
    <div className="stack">
      <p className="muted">
        The token has the Run permission for this gateway only. Store it securely.
        {canListTokens && (
          <>
            {" "}
            <Link to={page("tokens")}>View all tokens</Link>
          </>
        )}
      </p>
      {token !== null && <NewTokenNotice token={token} />}
      {canEdit && canRun ? (
        <form onSubmit={submit} className="filters">
          <Field label="Name (optional)">
            <input
              maxLength={256}
              value={name}
              onChange={(event) => setName(event.target.value)}
              placeholder={`${gateway.id} gateway`}
            />
          </Field>
          <ExpiryField onChange={setExpiresAt} />
          <Button type="submit" kind={token === null ? "primary" : "plain"} isBusy={create.isBusy}>
            {token === null ? "Create authentication token" : "Create another token"}
          </Button>
        </form>
      ) : (
        <p>Creating a token requires the gateway.edit and gateway.run permissions.</p>
      )}
      {create.error !== null && <ErrorNotice error={create.error} />}
    </div>
  );
}
