import { Field } from "../../components/field.tsx";
import { LinesField } from "../../components/lines-field.tsx";
import { SelectField } from "../../components/select-field.tsx";
import { isJudged, KINDS, type RuleDraft } from "./rule-draft.ts";
import { KIND_TITLES } from "./rule-words.ts";

interface RuleFieldsProps {
  readonly draft: RuleDraft;
  readonly onChange: (part: Partial<RuleDraft>) => void;
}

/** What a rule of its type looks for. */
export function SubjectFields({ draft, onChange }: RuleFieldsProps) {
  const { type } = draft;
  if (type === "pii" || type === "secrets") {
    return (
      <fieldset className="fieldset">
        <legend className="field-label">Kinds</legend>
        <div className="guardrail-kinds">
          {KINDS[type].map((kind) => (
            <label key={kind} className="check">
              <input
                type="checkbox"
                checked={draft.kinds.includes(kind)}
                onChange={({ target }) =>
                  onChange({
                    kinds: KINDS[type].filter((one) =>
                      one === kind ? target.checked : draft.kinds.includes(one),
                    ),
                  })
                }
              />
              <span>{KIND_TITLES[kind]}</span>
            </label>
          ))}
        </div>
      </fieldset>
    );
  }
  if (type === "words")
    return (
      <LinesField
        label="Words and phrases"
        hint="One in each line, in upper or lower case. Look-alike letters and invisible characters are seen through."
        value={draft.words}
        placeholder="Blue Heron"
        onChange={(words) => onChange({ words })}
      />
    );
  if (type === "regex")
    return (
      <Field label="Pattern" hint="A regular expression of RE2, matched exactly.">
        <input
          required
          className="mono"
          spellCheck={false}
          value={draft.pattern}
          placeholder={String.raw`\bACME-[0-9]{4,6}\b`}
          onChange={({ target }) => onChange({ pattern: target.value })}
        />
      </Field>
    );
  if (type === "webhook")
    return (
      <Field label="Address" hint="Gets the text, signed, and answers with a verdict.">
        <input
          required
          type="url"
          value={draft.url}
          placeholder="https://judge.example.com/"
          onChange={({ target }) => onChange({ url: target.value })}
        />
      </Field>
    );
  return <ModelFields draft={draft} onChange={onChange} />;
}

function ModelFields({ draft, onChange }: RuleFieldsProps) {
  return (
    <>
      <div className="form-grid">
        <Field label="Model" hint="As provider/model, called with stored keys.">
          <input
            required
            value={draft.model}
            placeholder="ollama/llama-guard3"
            onChange={({ target }) => onChange({ model: target.value })}
          />
        </Field>
        <SelectField
          label="What it answers"
          value={draft.format}
          options={[
            ["guard", "Safe or unsafe, with categories"],
            ["injection", "Probability of prompt injection"],
            ["moderation", "Results of a moderation endpoint"],
          ]}
          onChange={(format) => onChange({ format })}
        />
      </div>
      {draft.format === "guard" && (
        <Field label="Instructions" hint="Make a judge of a general model. Empty: the model is one.">
          <textarea
            value={draft.instructions}
            onChange={({ target }) => onChange({ instructions: target.value })}
          />
        </Field>
      )}
      {draft.format === "injection" ? (
        <Field label="Threshold" hint="A text is refused from this probability on.">
          <input
            type="number"
            required
            min={0}
            max={1}
            step="any"
            value={draft.threshold}
            onChange={({ target }) => onChange({ threshold: target.value })}
          />
        </Field>
      ) : (
        <LinesField
          label="Categories"
          hint="One in each line. Empty: all that the model names."
          value={draft.categories}
          placeholder="S1"
          onChange={(categories) => onChange({ categories })}
        />
      )}
    </>
  );
}

/** What seldom differs from its default. */
export function FurtherFields({ draft, onChange }: RuleFieldsProps) {
  return (
    <details>
      <summary>Exceptions, failures and logs</summary>
      <div className="stack">
        {isJudged(draft.type) ? (
          <div className="form-grid">
            <Field label="Milliseconds for a verdict">
              <input
                type="number"
                required
                min={100}
                max={60_000}
                value={draft.timeoutMs}
                onChange={({ target }) => onChange({ timeoutMs: target.value })}
              />
            </Field>
            <SelectField
              label="Streams"
              value={draft.stream}
              options={[
                ["window", "Judged in pieces of some sentences"],
                ["hold", "Held until their end"],
              ]}
              onChange={(stream) => onChange({ stream })}
            />
          </div>
        ) : (
          <LinesField
            label="Allowed texts"
            hint="One in each line; * stands for any text. They are no finding."
            value={draft.allow}
            placeholder="*@example.com"
            onChange={(allow) => onChange({ allow })}
          />
        )}
        <div className="form-grid">
          <SelectField
            label="A text that cannot be searched"
            value={draft.onFailure}
            options={[
              ["block", "is refused"],
              ["allow", "passes"],
            ]}
            onChange={(onFailure) => onChange({ onFailure })}
          />
          <SelectField
            label="Pictures, sound and films"
            value={draft.onMedia}
            options={[
              ["allow", "pass"],
              ["block", "are refused"],
            ]}
            onChange={(onMedia) => onChange({ onMedia })}
          />
          <SelectField
            label="Stored calls hold"
            value={draft.logs}
            options={[
              ["full", "the text that was found"],
              ["masked", isJudged(draft.type) ? "no body after a finding" : "a mask in its place"],
            ]}
            onChange={(logs) => onChange({ logs })}
          />
        </div>
      </div>
    </details>
  );
}
