import { type FormEvent, useState } from "react";
import { PERMISSIONS, type Permission } from "@signalbox/protocol";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { useAction } from "../../http/use-action.ts";
import { useAccount, useScope } from "../../session/session.ts";
import { ExpiryField } from "./expiry-field.tsx";
import { NewTokenNotice } from "./new-token-notice.tsx";
import { changedPolicy, NO_POLICY } from "./policy-draft.ts";
import { PolicyFields } from "./policy-fields.tsx";
import type { NewToken } from "./token.ts";

const DESCRIPTIONS: Readonly<Record<Permission, string>> = {
  "gateway.run": "send calls through gateways",
  "gateway.read": "view gateways, logs and usage",
  "gateway.edit": "create, change and delete gateways",
  "gateway.price": "state prices of calls that count in limits",
  "tags.read": "view tags",
  "tags.edit": "change tags",
  "agents.read": "view agents and their state",
  "agents.edit": "call methods, set state, destroy instances",
  "webhooks.read": "view sources and deliveries",
  "webhooks.edit": "send test events, replay deliveries",
  "tokens.edit": "create and revoke tokens",
  "audit.read": "view the audit log, with resources before and after each change",
};

export function CreateTokenDialog({
  onClose,
  onCreated,
}: {
  readonly onClose: () => void;
  readonly onCreated: () => void;
}) {
  const account = useAccount();
  const { session } = useScope();
  const [name, setName] = useState("");
  const [permissions, setPermissions] = useState<ReadonlySet<Permission>>(new Set());
  const [expiresAt, setExpiresAt] = useState<string | null>(null);
  const [policy, setPolicy] = useState(NO_POLICY);
  const [created, setCreated] = useState<NewToken | null>(null);
  const create = useAction(async () => {
    const token = await account.tokens.create({
      name,
      permissions: [...permissions],
      expires_at: expiresAt ?? undefined,
      // A token that is restricted to one gateway can create only tokens for that gateway.
      gateway_id: session.gateway_id ?? undefined,
      ...changedPolicy(NO_POLICY, policy),
    });
    setCreated(token);
    onCreated();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void create.run();
  };
  const toggle = (permission: Permission) => {
    const next = new Set(permissions);
    if (!next.delete(permission)) next.add(permission);
    setPermissions(next);
  };
  if (created !== null) {
    return (
      <Dialog title="Token created" onClose={onClose}>
        <NewTokenNotice token={created.token} />
        <div className="dialog-actions">
          <Button kind="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create token" onClose={onClose} isWide>
      <form onSubmit={submit} className="stack">
        <Field label="Name" hint="The program or person that will use the token.">
          <input
            required
            maxLength={256}
            value={name}
            onChange={(event) => setName(event.target.value)}
            placeholder="ci-deploys"
          />
        </Field>
        <fieldset className="fieldset">
          <legend className="field-label">Permissions</legend>
          <p className="muted small">Permissions are independent: edit does not include read.</p>
          <div className="checks">
            {PERMISSIONS.map((permission) => (
              <label key={permission} className="check">
                <input
                  type="checkbox"
                  checked={permissions.has(permission)}
                  // A token cannot grant permissions that it does not have.
                  disabled={!session.permissions.includes(permission)}
                  onChange={() => toggle(permission)}
                />
                <span>
                  <code>{permission}</code> <span className="muted small">{DESCRIPTIONS[permission]}</span>
                </span>
              </label>
            ))}
          </div>
        </fieldset>
        <ExpiryField onChange={setExpiresAt} />
        <details>
          <summary>Budgets, rate limits, models and owner</summary>
          <p className="muted small">
            A token with limits is a virtual key: an application uses it in place of a provider's key.
          </p>
          <PolicyFields draft={policy} onChange={setPolicy} />
        </details>
        {create.error !== null && <ErrorNotice error={create.error} />}
        <div className="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            type="submit"
            isBusy={create.isBusy}
            disabled={permissions.size === 0 || name === ""}
          >
            Create token
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
