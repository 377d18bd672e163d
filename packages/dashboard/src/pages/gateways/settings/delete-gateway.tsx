import { useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ConfirmDialog } from "../../../components/confirm-dialog.tsx";
import { request } from "../../../http/api.ts";
import { navigate } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";

export function DeleteGateway({ gateway }: { readonly gateway: Gateway }) {
  const { api, page } = useAccountPaths();
  const [isConfirming, setConfirming] = useState(false);
  const remove = async () => {
    await request(api("ai-gateway", "gateways", gateway.id), { method: "DELETE" });
    navigate(page("gateways"));
  };
  return (
    <section className="panel" aria-labelledby="delete-title">
      <div className="row spread">
        <div>
          <h2 id="delete-title">Delete gateway</h2>
          <p className="muted">
            Deletes the gateway with its logs, usage data, stored provider keys, tags and tokens.
          </p>
        </div>
        <Button onClick={() => setConfirming(true)}>Delete gateway</Button>
      </div>
      {isConfirming && (
        <ConfirmDialog
          title={`Delete ${gateway.id}?`}
          verb="Delete"
          onConfirm={remove}
          onClose={() => setConfirming(false)}
        >
          <p>Calls to this gateway are rejected immediately. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </section>
  );
}
