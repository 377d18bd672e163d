import type { SpendRule } from "@signalbox/client";
import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { LinesField } from "../../components/lines-field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { UNITS } from "./amount.ts";
import { PeriodFields } from "./period-fields.tsx";
import { BLANK_RULE, fromRuleDraft, type RuleDraft, toRuleDraft } from "./rule-draft.ts";

interface RuleDialogProps {
  /** Null for a new limit. */
  readonly rule: SpendRule | null;
  readonly onSave: (rule: SpendRule) => Promise<void>;
  readonly onClose: () => void;
}

export function RuleDialog({ rule, onSave, onClose }: RuleDialogProps) {
  const [draft, setDraft] = useState<RuleDraft>(rule === null ? BLANK_RULE : toRuleDraft(rule));
  const change = (part: Partial<RuleDraft>) => setDraft((before) => ({ ...before, ...part }));
  return (
    <FormDialog
      title={rule === null ? "Add limit" : `Edit ${rule.id ?? "limit"}`}
      verb={rule === null ? "Add limit" : "Save limit"}
      onSubmit={() => onSave(fromRuleDraft(draft))}
      onClose={onClose}
    >
      <Field label="Name" hint="Spent amounts are stored by this name. It cannot be changed later.">
        <input
          required
          pattern="[A-Za-z0-9_\-]{1,64}"
          title="1 to 64 letters, digits, underscores or hyphens"
          readOnly={rule !== null}
          value={draft.id}
          placeholder="all"
          onChange={({ target }) => change({ id: target.value })}
        />
      </Field>
      <div className="form-grid">
        <Field label="Counts">
          <select
            value={draft.limitType}
            onChange={({ target }) => change({ limitType: target.value as SpendRule["limitType"] })}
          >
            <option value="cost">Cost</option>
            <option value="requests">Requests</option>
            <option value="tokens">Tokens</option>
            <option value="parallel">Parallel calls</option>
          </select>
        </Field>
        <Field label={`Limit (${UNITS[draft.limitType]})`}>
          <input
            type="number"
            required
            min={0}
            step={draft.limitType === "cost" ? "any" : 1}
            value={draft.limit}
            onChange={({ target }) => change({ limit: target.value })}
          />
        </Field>
        {draft.limitType !== "parallel" && (
          <PeriodFields
            period={draft.period}
            onChange={(part) => change({ period: { ...draft.period, ...part } })}
          />
        )}
      </div>
      <div className="form-grid">
        <LinesField
          label="Models"
          hint="One in each line; * matches any text. Empty: all."
          value={draft.models}
          placeholder="gpt-5*"
          onChange={(models) => change({ models })}
        />
        <LinesField
          label="Providers"
          hint="One in each line. Empty: all."
          value={draft.providers}
          placeholder="openai"
          onChange={(providers) => change({ providers })}
        />
      </div>
      <LinesField
        label="Metadata"
        hint="One key in each line. A key alone counts each of its values separately; key=a, b applies the limit to these values only."
        value={draft.metadata}
        placeholder="token.owner"
        onChange={(metadata) => change({ metadata })}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={draft.isEnabled}
          onChange={({ target }) => change({ isEnabled: target.checked })}
        />
        <span>Enabled</span>
      </label>
    </FormDialog>
  );
}
