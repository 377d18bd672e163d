import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { ModelFields } from "../../components/model-fields.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { type OwnPrice, TIERS } from "./price-rows.ts";

const PARTS = [
  { name: "in", title: "Input" },
  { name: "out", title: "Output" },
  { name: "cached", title: "Cached input" },
  { name: "cacheWrite", title: "Cache write" },
  { name: "cacheWrite1h", title: "Cache write, 1 hour" },
  { name: "reasoning", title: "Reasoning" },
  { name: "audioIn", title: "Audio input" },
  { name: "audioOut", title: "Audio output" },
  { name: "imageIn", title: "Image input" },
  { name: "imageOut", title: "Image output" },
  { name: "searches", title: "Thousand searches" },
  { name: "fileSearches", title: "Thousand file searches" },
  { name: "audioHour", title: "Hour of sound" },
  { name: "pages", title: "Thousand pages" },
  { name: "image", title: "Picture" },
  { name: "characters", title: "Million characters spoken" },
  { name: "rankings", title: "Thousand searches of rankings" },
] as const;

const PART_NAMES = PARTS.map(({ name }) => name);

/** The texts of fields by name. */
type Texts = Readonly<Record<string, string>>;

function textsOf(names: readonly string[], numbers: object = {}): Texts {
  const given = new Map<string, unknown>(Object.entries(numbers));
  return Object.fromEntries(names.map((name) => [name, JSON.stringify(given.get(name)) ?? ""]));
}

function numbersOf<Name extends string>(names: readonly Name[], texts: Texts): Partial<Record<Name, number>> {
  const given = names.filter((name) => (texts[name] ?? "") !== "");
  return Object.fromEntries(given.map((name) => [name, Number(texts[name])])) as Partial<
    Record<Name, number>
  >;
}

interface PriceDialogProps {
  /** Null for a new price. */
  readonly row: OwnPrice | null;
  readonly onSave: (row: OwnPrice) => Promise<void>;
  readonly onClose: () => void;
}

export function PriceDialog({ row, onSave, onClose }: PriceDialogProps) {
  const [provider, setProvider] = useState(row?.provider ?? "");
  const [model, setModel] = useState(row?.model ?? "");
  const [parts, setParts] = useState<Texts>(() => textsOf(PART_NAMES, row?.price));
  const [factors, setFactors] = useState<Texts>(() => textsOf(TIERS, row?.price.tiers));
  const save = () => {
    const numbers = numbersOf(PART_NAMES, parts);
    const tiers = numbersOf(TIERS, factors);
    const price = { in: 0, out: 0, ...numbers, ...(Object.keys(tiers).length === 0 ? {} : { tiers }) };
    return onSave({ provider: provider.trim(), model: model.trim(), price });
  };
  return (
    <FormDialog
      title={row === null ? "Set price" : `Price of ${row.model}`}
      verb="Save price"
      onSubmit={save}
      onClose={onClose}
    >
      <div className="form-grid">
        <ModelFields
          provider={provider}
          model={model}
          onProvider={setProvider}
          onModel={setModel}
          modelHint="* applies to all other models of the provider."
          isReadOnly={row !== null}
        />
      </div>
      <p className="muted small">US dollars per million tokens. Empty: the price of input or output.</p>
      <div className="filters">
        {PARTS.map(({ name, title }) => (
          <Field key={name} label={title}>
            <input
              type="number"
              required={name === "in" || name === "out"}
              min={0}
              step="any"
              value={parts[name] ?? ""}
              onChange={({ target }) => setParts({ ...parts, [name]: target.value })}
            />
          </Field>
        ))}
      </div>
      <p className="muted small">
        Factors of service tiers: 0.5 halves the price of a token. Empty: the factor of the provider.
      </p>
      <div className="filters">
        {TIERS.map((tier) => (
          <Field key={tier} label={`Factor of ${tier}`}>
            <input
              type="number"
              min={0}
              step="any"
              value={factors[tier] ?? ""}
              onChange={({ target }) => setFactors({ ...factors, [tier]: target.value })}
            />
          </Field>
        ))}
      </div>
    </FormDialog>
  );
}
