import { Field } from "./field.tsx";

interface ModelFieldsProps {
  readonly provider: string;
  readonly model: string;
  readonly onProvider: (provider: string) => void;
  readonly onModel: (model: string) => void;
  readonly modelHint?: string;
  readonly isReadOnly?: boolean;
}

/** The two fields that name a model of a provider. */
export function ModelFields({
  provider,
  model,
  onProvider,
  onModel,
  modelHint,
  isReadOnly = false,
}: ModelFieldsProps) {
  return (
    <>
      <Field label="Provider">
        <input
          required
          readOnly={isReadOnly}
          value={provider}
          placeholder="openai"
          onChange={({ target }) => onProvider(target.value)}
        />
      </Field>
      <Field label="Model" {...(modelHint === undefined ? {} : { hint: modelHint })}>
        <input
          required
          readOnly={isReadOnly}
          value={model}
          placeholder="gpt-5"
          onChange={({ target }) => onModel(target.value)}
        />
      </Field>
    </>
  );
}
