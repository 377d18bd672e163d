import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { request } from "../../http/api.ts";
import { useAction } from "../../http/use-action.ts";
import { navigate } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import type { Gateway } from "./gateway.ts";

export function CreateGatewayDialog({ onClose }: { readonly onClose: () => void }) {
  const { api, page } = useAccountPaths();
  const [id, setId] = useState("");
  const create = useAction(async () => {
    const { result } = await request<Gateway>(api("ai-gateway", "gateways"), {
      method: "POST",
      body: { id },
    });
    navigate(page("gateways", result.id, "settings"));
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void create.run();
  };
  return (
    <Dialog title="Create gateway" onClose={onClose}>
      <form onSubmit={submit} className="stack">
        <Field
          label="Name"
          hint="1 to 64 letters, digits, underscores or hyphens. The name is part of the gateway URL and cannot be changed later."
        >
          <input
            required
            maxLength={64}
            pattern="[A-Za-z0-9_\-]+"
            title="1 to 64 letters, digits, underscores or hyphens"
            value={id}
            onChange={(event) => setId(event.target.value)}
            placeholder="chat-app"
          />
        </Field>
        {create.error !== null && <ErrorNotice error={create.error} />}
        <div className="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isBusy={create.isBusy}>
            Create gateway
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
