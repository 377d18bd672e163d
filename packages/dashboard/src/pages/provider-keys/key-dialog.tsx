import type { ProviderKey, ProviderKeysApi } from "@signalbox/client";
import { useId, useState } from "react";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { BLANK_KEY, fromKeyDraft, type KeyDraft, toKeyDraft } from "./key-draft.ts";

/** Suggestions only: the field takes every provider that the service knows. */
const COMMON_PROVIDERS = [
  "anthropic",
  "azure-openai",
  "deepseek",
  "google-ai-studio",
  "groq",
  "mistral",
  "openai",
  "openrouter",
];

interface KeyDialogProps {
  readonly keys: ProviderKeysApi;
  /** Null for a new key. */
  readonly edited: ProviderKey | null;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

export function KeyDialog({ keys, edited, onClose, onSaved }: KeyDialogProps) {
  const [before] = useState<KeyDraft>(() => (edited === null ? BLANK_KEY : toKeyDraft(edited)));
  const [draft, setDraft] = useState(before);
  const change = (part: Partial<KeyDraft>) => setDraft((now) => ({ ...now, ...part }));
  const listId = useId();
  const save = async () => {
    const members = fromKeyDraft(draft, before);
    await (edited === null
      ? keys.create({ provider_slug: draft.provider.trim(), ...members })
      : keys.update(edited.id, members));
    onSaved();
  };
  return (
    <FormDialog
      title={edited === null ? "Add provider key" : `Edit key of ${edited.provider_slug}`}
      verb={edited === null ? "Add key" : "Save key"}
      onSubmit={save}
      onClose={onClose}
    >
      <Field label="Provider" hint="Custom providers begin with custom-.">
        <input
          required
          readOnly={edited !== null}
          list={listId}
          spellCheck={false}
          value={draft.provider}
          placeholder="openai"
          onChange={({ target }) => change({ provider: target.value })}
        />
      </Field>
      <datalist id={listId}>
        {COMMON_PROVIDERS.map((slug) => (
          <option key={slug} value={slug} />
        ))}
      </datalist>
      <Field label="The key is">
        <select
          value={draft.source}
          onChange={({ target }) => change({ source: target.value === "secret" ? "secret" : "reference" })}
        >
          <option value="secret">stored here, encrypted</option>
          <option value="reference">in a variable or file of the service</option>
        </select>
      </Field>
      {draft.source === "secret" ? (
        <Field
          label="Key"
          hint={
            edited === null
              ? "It is not shown again."
              : "Leave empty to keep the stored key. It is never shown."
          }
        >
          <input
            type="password"
            required={edited === null}
            autoComplete="off"
            value={draft.secret}
            onChange={({ target }) => change({ secret: target.value })}
          />
        </Field>
      ) : (
        <Field label="Variable or file" hint="env:NAME or file:PATH.">
          <input
            required
            spellCheck={false}
            value={draft.reference}
            placeholder="env:OPENAI_API_KEY"
            onChange={({ target }) => change({ reference: target.value })}
          />
        </Field>
      )}
      <PoolFields draft={draft} onChange={change} />
    </FormDialog>
  );
}

interface PoolFieldsProps {
  readonly draft: KeyDraft;
  readonly onChange: (part: Partial<KeyDraft>) => void;
}

function PoolFields({ draft, onChange }: PoolFieldsProps) {
  return (
    <>
      <div className="form-grid">
        <Field label="Weight" hint="Share of the pool's calls, 1 to 1000.">
          <input
            type="number"
            required
            min={1}
            max={1000}
            step={1}
            value={draft.weight}
            onChange={({ target }) => onChange({ weight: target.value })}
          />
        </Field>
        <Field label="Alias (optional)" hint="Empty: the key belongs to the pool of its provider.">
          <input
            maxLength={64}
            spellCheck={false}
            value={draft.alias}
            onChange={({ target }) => onChange({ alias: target.value })}
          />
        </Field>
        <Field label="Rate limit (calls)">
          <input
            type="number"
            min={1}
            step={1}
            value={draft.rateLimit}
            placeholder="Off"
            onChange={({ target }) => onChange({ rateLimit: target.value })}
          />
        </Field>
        <Field label="Rate limit period (seconds)">
          <input
            type="number"
            required
            min={1}
            step={1}
            value={draft.ratePeriod}
            onChange={({ target }) => onChange({ ratePeriod: target.value })}
          />
        </Field>
      </div>
      {draft.alias !== "" && (
        <label className="check">
          <input
            type="checkbox"
            checked={draft.isDefault}
            onChange={({ target }) => onChange({ isDefault: target.checked })}
          />
          <span>Also use it for calls that name no alias</span>
        </label>
      )}
      <Field label="Models" hint="One in each line; * matches any text, ! excludes. Empty: all.">
        <textarea
          value={draft.models}
          spellCheck={false}
          onChange={({ target }) => onChange({ models: target.value })}
        />
      </Field>
    </>
  );
}
