import type { GuardrailPlace, GuardrailRule } from "@signalbox/client";
import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { SelectField } from "../../components/select-field.tsx";
import { BLANK_RULE, fromRuleDraft, isJudged, type RuleDraft, toRuleDraft, withType } from "./rule-draft.ts";
import { FurtherFields, SubjectFields } from "./rule-fields.tsx";
import { TYPE_TITLES } from "./rule-words.ts";
import { TryRules } from "./try-rules.tsx";

interface RuleDialogProps {
  /** Null for a new rule. */
  readonly rule: GuardrailRule | null;
  /** Undefined: the account. */
  readonly gatewayId: string | undefined;
  readonly onSave: (rule: GuardrailRule) => Promise<void>;
  readonly onClose: () => void;
}

const TYPES = Object.entries(TYPE_TITLES) as [GuardrailRule["type"], string][];
const PLACES: readonly (readonly [GuardrailPlace, string])[] = [
  ["prompt", "Prompts, with the results of tools"],
  ["response", "Answers, with the arguments of tools"],
];

/** Writes a rule, and tries it before it is saved. */
export function RuleDialog({ rule, gatewayId, onSave, onClose }: RuleDialogProps) {
  const [draft, setDraft] = useState<RuleDraft>(rule === null ? BLANK_RULE : toRuleDraft(rule));
  const change = (part: Partial<RuleDraft>) => setDraft((before) => ({ ...before, ...part }));
  // A rule without a name can be tried.
  const tried = [fromRuleDraft({ ...draft, id: draft.id === "" ? "rule" : draft.id, isEnabled: true })];
  return (
    <FormDialog
      title={rule === null ? "Add guardrail" : `Edit ${rule.id}`}
      verb={rule === null ? "Add guardrail" : "Save guardrail"}
      canSubmit={draft.places.length > 0}
      isWide
      onSubmit={() => onSave(fromRuleDraft(draft))}
      onClose={onClose}
    >
      <div className="form-grid">
        <Field label="Name" hint="Findings are stored by this name.">
          <input
            required
            pattern="[A-Za-z0-9_\-]{1,64}"
            title="1 to 64 letters, digits, underscores or hyphens"
            readOnly={rule !== null}
            value={draft.id}
            placeholder="people"
            onChange={({ target }) => change({ id: target.value })}
          />
        </Field>
        <SelectField
          label="Looks for"
          value={draft.type}
          options={TYPES}
          onChange={(type) => setDraft((before) => withType(before, type))}
        />
        <SelectField
          label="What follows"
          value={draft.action}
          options={[
            ["block", "Block: the call is refused"],
            ...(isJudged(draft.type) ? [] : [["mask", "Mask: a placeholder takes its place"] as const]),
            ["flag", "Flag: the log says so"],
          ]}
          onChange={(action) => change({ action })}
        />
      </div>
      <SubjectFields draft={draft} onChange={change} />
      <fieldset className="fieldset">
        <legend className="field-label">Where</legend>
        <div className="guardrail-kinds">
          {PLACES.map(([place, title]) => (
            <label key={place} className="check">
              <input
                type="checkbox"
                checked={draft.places.includes(place)}
                onChange={({ target }) =>
                  change({
                    places: PLACES.flatMap(([one]) =>
                      (one === place ? target.checked : draft.places.includes(one)) ? [one] : [],
                    ),
                  })
                }
              />
              <span>{title}</span>
            </label>
          ))}
        </div>
      </fieldset>
      <FurtherFields draft={draft} onChange={change} />
      <label className="check">
        <input
          type="checkbox"
          checked={draft.isEnabled}
          onChange={({ target }) => change({ isEnabled: target.checked })}
        />
        <span>Enabled</span>
      </label>
      {!isJudged(draft.type) && (
        <TryRules rules={tried} gatewayId={gatewayId} title="Try it before it is saved" />
      )}
    </FormDialog>
  );
}
