import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { useAction } from "../../http/use-action.ts";
import { navigate } from "../../routing/location.ts";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import { RotateDialog } from "./rotate-dialog.tsx";
import type { Token } from "./token.ts";

export function TokenActions({ token, onChange }: { readonly token: Token; readonly onChange: () => void }) {
  const account = useAccount();
  const { page } = useAccountPaths();
  const [dialog, setDialog] = useState<"rotate" | "disable" | "revoke" | null>(null);
  const close = () => setDialog(null);
  const setDisabled = async (disabled: boolean) => {
    await account.tokens.update(token.id, { disabled });
    onChange();
  };
  const enable = useAction(() => setDisabled(false));
  const revoke = async () => {
    await account.tokens.revoke(token.id);
    navigate(page("tokens"));
  };
  return (
    <>
      <Button onClick={() => setDialog("rotate")}>Rotate</Button>
      {token.disabled ? (
        <Button isBusy={enable.isBusy} onClick={() => void enable.run()}>
          Enable
        </Button>
      ) : (
        <Button onClick={() => setDialog("disable")}>Disable</Button>
      )}
      <Button onClick={() => setDialog("revoke")}>Revoke</Button>
      {enable.error !== null && <ErrorNotice error={enable.error} />}
      {dialog === "rotate" && <RotateDialog token={token} onClose={close} onRotated={onChange} />}
      {dialog === "disable" && (
        <ConfirmDialog
          title={`Disable “${token.name}”?`}
          verb="Disable"
          onConfirm={() => setDisabled(true)}
          onClose={close}
        >
          <p>Requests with this token are refused, and its connections end, until it is enabled again.</p>
        </ConfirmDialog>
      )}
      {dialog === "revoke" && (
        <ConfirmDialog title={`Revoke “${token.name}”?`} verb="Revoke" onConfirm={revoke} onClose={close}>
          <p>Requests with this token are rejected immediately. This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
