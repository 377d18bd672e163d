import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { useAction } from "../../http/use-action.ts";
import { useAccount } from "../../session/session.ts";
import { changedPolicy, toPolicyDraft } from "./policy-draft.ts";
import { PolicyFields } from "./policy-fields.tsx";
import type { Token } from "./token.ts";

/** Changes the name and the limits of a token. The parent mounts it again when the token has changed. */
export function TokenForm({ token, onChange }: { readonly token: Token; readonly onChange: () => void }) {
  const account = useAccount();
  const [before] = useState(() => toPolicyDraft(token));
  const [draft, setDraft] = useState(before);
  const [name, setName] = useState(token.name);
  const isChanged = name !== token.name || Object.keys(changedPolicy(before, draft)).length > 0;
  const save = useAction(async () => {
    await account.tokens.change(token.id, (now) => ({
      ...(name === token.name ? {} : { name }),
      ...changedPolicy(before, draft, toPolicyDraft(now)),
    }));
    onChange();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void save.run();
  };
  return (
    <section className="panel" aria-labelledby="token-form-title">
      <h2 id="token-form-title">Settings</h2>
      <p className="muted">A change applies to the next call. A changed budget keeps what was spent.</p>
      <form onSubmit={submit} className="stack">
        <Field label="Name">
          <input required maxLength={256} value={name} onChange={({ target }) => setName(target.value)} />
        </Field>
        <PolicyFields draft={draft} onChange={setDraft} />
        {save.error !== null && <ErrorNotice error={save.error} />}
        <div className="row">
          <Button type="submit" kind="primary" isBusy={save.isBusy} disabled={!isChanged}>
            Save changes
          </Button>
          {isChanged && (
            <Button
              onClick={() => {
                setDraft(before);
                setName(token.name);
              }}
            >
              Discard changes
            </Button>
          )}
        </div>
      </form>
    </section>
  );
}
