import { Field } from "../../components/field.tsx";

/** Selects instances by what is wrong with them. */
export function ProblemFilter({
  value,
  onChange,
  none,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** Title of the choice without a filter. */
  readonly none: string;
}) {
  return (
    <Field label="Problem">
      <select value={value} onChange={({ target }) => onChange(target.value)}>
        <option value="">{none}</option>
        {none !== "Any" && <option value="any">Any problem</option>}
        <option value="dead_letters">Dead letters</option>
        <option value="retrying">Retrying</option>
        <option value="stuck">Stuck</option>
        <option value="error">Recent error</option>
      </select>
    </Field>
  );
}
