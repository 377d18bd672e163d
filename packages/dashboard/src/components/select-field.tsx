import type { ReactNode } from "react";
import { Field } from "./field.tsx";

interface SelectFieldProps<Value extends string> {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly value: Value;
  readonly options: readonly (readonly [value: Value, title: string])[];
  readonly isDisabled?: boolean;
  readonly onChange: (value: Value) => void;
}

/** A field with a fixed list of values. */
export function SelectField<Value extends string>(props: SelectFieldProps<Value>) {
  const { label, hint, value, options, isDisabled = false, onChange } = props;
  return (
    <Field label={label} hint={hint}>
      <select
        value={value}
        disabled={isDisabled}
        onChange={({ target }) => {
          const chosen = options.find(([option]) => option === target.value);
          if (chosen !== undefined) onChange(chosen[0]);
        }}
      >
        {options.map(([option, title]) => (
          <option key={option} value={option}>
            {title}
          </option>
        ))}
      </select>
    </Field>
  );
}
