import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field } from "../../components/field.tsx";
import { navigate } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import { TypeSelect } from "./type-select.tsx";

/** Opens the page of a resource, which may have no tags yet. */
export function NewResourceDialog({ onClose }: { readonly onClose: () => void }) {
  const { page } = useAccountPaths();
  const [type, setType] = useState("ai_gateway");
  const [id, setId] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    navigate(page("tags", "resources", type, id));
  };
  return (
    <Dialog title="Tag a resource" onClose={onClose}>
      <form onSubmit={submit} className="stack">
        <TypeSelect value={type} onChange={setType} />
        <Field
          label="ID"
          hint="The name of a gateway, the ID of a token, or the agent and instance, for example webhook-agent/my-repo."
        >
          <input required value={id} onChange={({ target }) => setId(target.value)} placeholder="default" />
        </Field>
        <div className="dialog-actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit">
            Continue
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
