/** The properties of models, limits and conditions in a route. */
import type { RouteElement } from "@signalbox/client";
import { useState } from "react";
import { Field } from "../../components/field.tsx";
import {
  type ConditionDraft,
  fromConditionDraft,
  type Operator,
  OPERATORS,
  toConditionDraft,
} from "./condition-draft.ts";
import { withProperty } from "./route-elements.ts";

interface PropertyFieldsProps {
  readonly element: RouteElement;
  readonly onChange: (element: RouteElement) => void;
}

export function ModelFields({ element, onChange }: PropertyFieldsProps) {
  return (
    <div className="form-grid">
      <TextProperty label="Provider" name="provider" element={element} onChange={onChange} />
      <TextProperty label="Model" name="model" element={element} onChange={onChange} />
      <NumberProperty
        label="Timeout (ms)"
        name="timeout"
        element={element}
        onChange={onChange}
        placeholder="The call's"
      />
      <NumberProperty
        label="Retries"
        name="retries"
        max={4}
        element={element}
        onChange={onChange}
        placeholder="The call's"
      />
    </div>
  );
}

export function RateFields({ element, onChange }: PropertyFieldsProps) {
  const { properties = {} } = element;
  const isCost = properties["limitType"] === "cost";
  return (
    <div className="form-grid">
      <Field label="Counts">
        <select
          value={isCost ? "cost" : "count"}
          onChange={({ target }) => onChange(withProperty(element, "limitType", target.value))}
        >
          <option value="count">Calls</option>
          <option value="cost">Cost</option>
        </select>
      </Field>
      <NumberProperty
        label={isCost ? "Limit (US dollars)" : "Limit (calls)"}
        name="limit"
        isDecimal
        element={element}
        onChange={onChange}
      />
      <NumberProperty
        label="Window (seconds)"
        name={"interval" in properties && !("window" in properties) ? "interval" : "window"}
        element={element}
        onChange={onChange}
      />
      <TextProperty
        label="Key"
        name="key"
        hint="Counts each value separately, e.g. metadata.user_id. Empty: one count."
        element={element}
        onChange={onChange}
      />
      <Field label="Technique">
        <select
          value={properties["technique"] === "sliding" ? "sliding" : "fixed"}
          onChange={({ target }) => onChange(withProperty(element, "technique", target.value))}
        >
          <option value="fixed">Fixed</option>
          <option value="sliding">Sliding</option>
        </select>
      </Field>
    </div>
  );
}

/** The text is kept here, because a value such as `1.0` would change while it is typed. */
export function ConditionFields({ element, onChange }: PropertyFieldsProps) {
  const [draft, setDraft] = useState(() => toConditionDraft(element));
  if (draft === null)
    return <p className="muted">This condition has several parts. Edit it in the JSON view.</p>;
  const name = "condition" in (element.properties ?? {}) ? "condition" : "conditions";
  const change = (part: Partial<ConditionDraft>) => {
    const next = { ...draft, ...part };
    setDraft(next);
    onChange(withProperty(element, name, fromConditionDraft(next)));
  };
  return (
    <div className="form-grid">
      <Field label="Path" hint="metadata.plan, body.model, headers.x-team …">
        <input
          value={draft.path}
          spellCheck={false}
          onChange={({ target }) => change({ path: target.value })}
        />
      </Field>
      <Field label="Operator">
        <select
          value={draft.operator}
          onChange={({ target }) => change({ operator: target.value as Operator })}
        >
          {Object.entries(OPERATORS).map(([operator, title]) => (
            <option key={operator} value={operator}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Value" hint={valueHint(draft.operator)}>
        <input
          value={draft.value}
          spellCheck={false}
          onChange={({ target }) => change({ value: target.value })}
        />
      </Field>
    </div>
  );
}

function valueHint(operator: Operator): string | undefined {
  if (operator === "$exists") return "true or false.";
  return operator === "$in" || operator === "$nin" ? "Separated by commas." : undefined;
}

interface PropertyProps extends PropertyFieldsProps {
  readonly label: string;
  readonly name: string;
  readonly hint?: string;
  readonly placeholder?: string;
}

function TextProperty({ label, name, hint, element, onChange }: PropertyProps) {
  const value = element.properties?.[name];
  return (
    <Field label={label} hint={hint}>
      <input
        value={typeof value === "string" ? value : ""}
        spellCheck={false}
        onChange={({ target }) => onChange(withProperty(element, name, target.value))}
      />
    </Field>
  );
}

function NumberProperty({
  label,
  name,
  placeholder,
  max,
  isDecimal = false,
  element,
  onChange,
}: PropertyProps & { readonly max?: number; readonly isDecimal?: boolean }) {
  const value = element.properties?.[name];
  return (
    <Field label={label}>
      <input
        type="number"
        min={0}
        max={max}
        step={isDecimal ? "any" : 1}
        value={typeof value === "number" ? value : ""}
        placeholder={placeholder}
        onChange={({ target }) =>
          onChange(withProperty(element, name, target.value === "" ? undefined : target.valueAsNumber))
        }
      />
    </Field>
  );
}
