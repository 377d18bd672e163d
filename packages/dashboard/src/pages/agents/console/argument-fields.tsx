import { Field } from "../../../components/field.tsx";
import type { CallableMethod } from "../agent.ts";

interface ArgumentFieldsProps {
  readonly parameters: NonNullable<CallableMethod["parameters"]>;
  readonly typed: readonly string[];
  readonly onChange: (typed: string[]) => void;
}

/** A field for each parameter of a method. */
export function ArgumentFields({ parameters, typed, onChange }: ArgumentFieldsProps) {
  if (parameters.length === 0) return <p className="muted small">This method takes no arguments.</p>;
  const change = (index: number, text: string) =>
    onChange(parameters.map((_, i) => (i === index ? text : (typed[i] ?? ""))));
  return parameters.map(({ name, optional, rest }, i) => (
    // oxlint-disable-next-line react/no-array-index-key -- the position identifies the parameter
    <Field key={i} label={labelOf(name, i, optional, rest)}>
      <textarea
        className="mono argument"
        rows={Math.min(8, (typed[i] ?? "").split("\n").length)}
        spellCheck={false}
        value={typed[i] ?? ""}
        placeholder={rest ? "JSON array" : "JSON, or plain text"}
        onChange={({ target }) => change(i, target.value)}
      />
    </Field>
  ));
}

function labelOf(name: string, index: number, isOptional: boolean, isRest: boolean): string {
  const shown = name === "…" ? `Argument ${index + 1}` : name;
  if (isRest) return `${shown} (any number)`;
  return isOptional ? `${shown} (optional)` : shown;
}
