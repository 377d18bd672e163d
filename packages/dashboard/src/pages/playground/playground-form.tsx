import { useMemo } from "react";
import { Button } from "../../components/button.tsx";
import { Combobox } from "../../components/combobox.tsx";
import { Field } from "../../components/field.tsx";
import type { PlaygroundForm as Form, PlaygroundMessage } from "./playground-request.ts";

const MAX_SUGGESTIONS = 60;

interface PlaygroundFormProps {
  readonly form: Form;
  readonly models: readonly string[];
  /** Models beside that of the form, which get the same request. */
  readonly others: readonly string[];
  readonly maxModels: number;
  readonly onOthers: (models: readonly string[]) => void;
  readonly onChange: (part: Partial<Form>) => void;
}

export function PlaygroundForm(props: PlaygroundFormProps) {
  const { form, models, others, maxModels, onOthers, onChange } = props;
  const options = useMemo(() => suggestions(models, form.model), [models, form.model]);
  const change = (at: number, part: Partial<PlaygroundMessage>) =>
    onChange({ messages: form.messages.map((message, i) => (i === at ? { ...message, ...part } : message)) });
  const number = (label: string, name: "temperature" | "maxTokens" | "topP", max: number, step: number) => (
    <Field label={label}>
      <input
        type="number"
        min={0}
        max={max}
        step={step}
        value={form[name]}
        placeholder="Default"
        onChange={({ target }) => onChange({ [name]: target.value })}
      />
    </Field>
  );
  return (
    <div className="stack">
      <Combobox
        label="Model"
        value={form.model}
        options={options}
        onChange={(model) => onChange({ model })}
        onPick={(model) => onChange({ model })}
        placeholder="provider/model"
      />
      {others.map((model, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- the same model may be asked twice
        <div key={i} className="playground-other">
          <Combobox
            label={`Model ${i + 2}`}
            value={model}
            options={suggestions(models, model)}
            onChange={(next) => onOthers(others.with(i, next))}
            onPick={(next) => onOthers(others.with(i, next))}
            placeholder="provider/model"
          />
          <Button
            kind="quiet"
            aria-label={`Remove model ${i + 2}`}
            onClick={() => onOthers(others.toSpliced(i, 1))}
          >
            Remove
          </Button>
        </div>
      ))}
      {others.length + 1 < maxModels && (
        <div>
          <Button size="small" onClick={() => onOthers([...others, ""])}>
            Compare with another model
          </Button>
        </div>
      )}
      <Field label="System message (optional)">
        <textarea
          rows={2}
          value={form.system}
          onChange={({ target }) => onChange({ system: target.value })}
        />
      </Field>
      <div className="playground-messages">
        {form.messages.map(({ role, content }, i) => (
          // oxlint-disable-next-line react/no-array-index-key -- messages have no identity but their place
          <div key={i} className="playground-message">
            <div className="row spread">
              <select
                aria-label={`Role of message ${i + 1}`}
                value={role}
                onChange={({ target }) =>
                  change(i, { role: target.value === "assistant" ? "assistant" : "user" })
                }
              >
                <option value="user">User</option>
                <option value="assistant">Assistant</option>
              </select>
              {form.messages.length > 1 && (
                <Button
                  size="small"
                  kind="quiet"
                  aria-label={`Remove message ${i + 1}`}
                  onClick={() => onChange({ messages: form.messages.toSpliced(i, 1) })}
                >
                  Remove
                </Button>
              )}
            </div>
            <textarea
              aria-label={`Message ${i + 1}`}
              rows={3}
              value={content}
              onChange={({ target }) => change(i, { content: target.value })}
            />
          </div>
        ))}
        <div>
          <Button
            size="small"
            onClick={() => onChange({ messages: [...form.messages, { role: nextRole(form), content: "" }] })}
          >
            Add message
          </Button>
        </div>
      </div>
      <div className="playground-numbers">
        {number("Temperature", "temperature", 2, 0.1)}
        {number("Max tokens", "maxTokens", 1_000_000, 1)}
        {number("Top p", "topP", 1, 0.05)}
      </div>
      <div className="row">
        <label className="check">
          <input
            type="checkbox"
            checked={form.isStreamed}
            onChange={({ target }) => onChange({ isStreamed: target.checked })}
          />
          <span>Stream</span>
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={form.skipsCache}
            onChange={({ target }) => onChange({ skipsCache: target.checked })}
          />
          <span>Skip cache</span>
        </label>
      </div>
    </div>
  );
}

function nextRole({ messages }: Form): PlaygroundMessage["role"] {
  return messages.at(-1)?.role === "user" ? "assistant" : "user";
}

/** Models whose name contains the text; all of them if the text is a model, so that another one can be picked. */
function suggestions(models: readonly string[], text: string) {
  const wanted = text.trim().toLowerCase();
  const found = models.includes(text)
    ? models
    : models.filter((model) => model.toLowerCase().includes(wanted));
  return found.slice(0, MAX_SUGGESTIONS).map((model) => ({ text: model }));
}
