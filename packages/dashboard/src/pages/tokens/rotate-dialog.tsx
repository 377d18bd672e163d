import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { useAccount } from "../../session/session.ts";
import { NewTokenNotice } from "./new-token-notice.tsx";
import type { NewToken, Token } from "./token.ts";

const GRACES = [
  { seconds: 0, title: "Not at all" },
  { seconds: 3600, title: "1 hour" },
  { seconds: 24 * 3600, title: "1 day" },
  { seconds: 7 * 24 * 3600, title: "7 days" },
];

interface RotateDialogProps {
  readonly token: Token;
  readonly onClose: () => void;
  readonly onRotated: () => void;
}

/** Gives a token a new text, which is shown once. */
export function RotateDialog({ token, onClose, onRotated }: RotateDialogProps) {
  const account = useAccount();
  const [grace, setGrace] = useState("0");
  const [rotated, setRotated] = useState<NewToken | null>(null);
  if (rotated !== null) {
    return (
      <Dialog title="Token rotated" onClose={onClose}>
        <NewTokenNotice token={rotated.token} />
        <div className="dialog-actions">
          <Button kind="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  }
  const rotate = async () => {
    setRotated(await account.tokens.rotate(token.id, { grace_s: Number(grace) }));
    onRotated();
    return false;
  };
  return (
    <FormDialog title={`Rotate “${token.name}”`} verb="Rotate" onSubmit={rotate} onClose={onClose}>
      <p>The token gets a new text. Its limits and what is spent of them stay.</p>
      <Field
        label="The old text stays valid"
        hint="Without a grace, the connections of the token end. A second rotation ends an earlier grace."
      >
        <select value={grace} onChange={({ target }) => setGrace(target.value)}>
          {GRACES.map(({ seconds, title }) => (
            <option key={seconds} value={seconds}>
              {title}
            </option>
          ))}
        </select>
      </Field>
    </FormDialog>
  );
}
