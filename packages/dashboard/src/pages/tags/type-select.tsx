import { TAG_RESOURCE_TYPES } from "@signalbox/protocol";
import { Field } from "../../components/field.tsx";

/** Resource types of Signalbox itself, listed first. */
const OWN = ["ai_gateway", "agent", "webhook_source", "api_token", "account"];
const OTHERS = TAG_RESOURCE_TYPES.map(({ name }) => name).filter((name) => !OWN.includes(name));

interface TypeSelectProps {
  readonly value: string;
  readonly onChange: (type: string) => void;
  readonly isOptional?: boolean;
}

export function TypeSelect({ value, onChange, isOptional = false }: TypeSelectProps) {
  return (
    <Field label="Type">
      <select value={value} onChange={({ target }) => onChange(target.value)}>
        {isOptional && <option value="">Any</option>}
        <optgroup label="Signalbox">
          {OWN.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </optgroup>
        <optgroup label="Other">
          {OTHERS.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </optgroup>
      </select>
    </Field>
  );
}
