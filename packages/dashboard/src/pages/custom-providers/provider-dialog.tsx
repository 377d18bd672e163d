import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { request } from "../../http/api.ts";

/** A custom provider in the management API. */
export interface CustomProvider {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly base_url: string;
  readonly enable: boolean;
  /** A JSON object, with `[secret]` in place of stored values; empty for none. */
  readonly headers: string;
}

interface ProviderDialogProps {
  /** Of the list of custom providers. */
  readonly path: string;
  /** Null for a new provider. */
  readonly edited: CustomProvider | null;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

export function ProviderDialog({ path, edited, onClose, onSaved }: ProviderDialogProps) {
  const [draft, setDraft] = useState({
    slug: edited?.slug ?? "",
    name: edited?.name ?? "",
    base_url: edited?.base_url ?? "",
    headers: edited?.headers ?? "",
    enable: edited?.enable ?? true,
  });
  const change = (part: Partial<typeof draft>) => setDraft((before) => ({ ...before, ...part }));
  const save = async () => {
    const { slug, ...members } = draft;
    await (edited === null
      ? request(path, { method: "POST", body: { slug, ...members } })
      : request(`${path}/${encodeURIComponent(edited.id)}`, { method: "PATCH", body: members }));
    onSaved();
  };
  return (
    <FormDialog
      title={edited === null ? "Add provider" : `Edit custom-${edited.slug}`}
      verb={edited === null ? "Add provider" : "Save provider"}
      onSubmit={save}
      onClose={onClose}
    >
      <Field label="Slug" hint="Calls name the provider custom-slug. It cannot be changed later.">
        <input
          required
          readOnly={edited !== null}
          value={draft.slug}
          spellCheck={false}
          placeholder="inhouse"
          onChange={({ target }) => change({ slug: target.value })}
        />
      </Field>
      <Field label="Name">
        <input
          required
          maxLength={256}
          value={draft.name}
          placeholder="In-house models"
          onChange={({ target }) => change({ name: target.value })}
        />
      </Field>
      <Field label="Address" hint="The base URL; the path of a call is appended.">
        <input
          type="url"
          required
          maxLength={2048}
          value={draft.base_url}
          placeholder="https://models.example.com"
          onChange={({ target }) => change({ base_url: target.value })}
        />
      </Field>
      <Field
        label="Headers (optional)"
        hint="A JSON object that is added to every call. Values are stored encrypted and shown as [secret]. A new address removes them."
      >
        <textarea
          value={draft.headers}
          spellCheck={false}
          placeholder={'{"authorization":"Bearer …"}'}
          onChange={({ target }) => change({ headers: target.value })}
        />
      </Field>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.enable}
          onChange={({ target }) => change({ enable: target.checked })}
        />
        <span>Enabled</span>
      </label>
    </FormDialog>
  );
}
