import { useState } from "react";
import { Button } from "../../../components/button.tsx";
import { ConfirmDialog } from "../../../components/confirm-dialog.tsx";
import { ask } from "../../../http/api.ts";
import { navigate } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";

export function DeleteGateway({ gateway }: { readonly gateway: Gateway }) {
  const { api, page } = useAccountPaths();
  const [isAsking, setAsking] = useState(false);
  const remove = async () => {
    await ask(api("ai-gateway", "gateways", gateway.id), { method: "DELETE" });
    navigate(page("gateways"));
  };
  return (
    <section className="panel" aria-labelledby="delete-title">
      <div className="row spread">
        <div>
          <h2 id="delete-title">Delete this gateway</h2>
          <p className="muted">Its logs, usage figures, stored keys, tags and tokens go with it.</p>
        </div>
        <Button onClick={() => setAsking(true)}>Delete gateway</Button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title={`Delete ${gateway.id}?`}
          verb="Delete"
          onConfirm={remove}
          onClose={() => setAsking(false)}
        >
          <p>Clients of this gateway are refused at once. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </section>
  );
}
