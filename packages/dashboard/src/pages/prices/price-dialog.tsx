import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import type { OwnPrice } from "./price-rows.ts";

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
] as const;

interface PriceDialogProps {
  /** Null for a new price. */
  readonly row: OwnPrice | null;
  readonly onSave: (row: OwnPrice) => Promise<void>;
  readonly onClose: () => void;
}

export function PriceDialog({ row, onSave, onClose }: PriceDialogProps) {
  const [provider, setProvider] = useState(row?.provider ?? "");
  const [model, setModel] = useState(row?.model ?? "");
  const [parts, setParts] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(PARTS.map(({ name }) => [name, String(row?.price[name] ?? "")])),
  );
  const save = () => {
    const given = PARTS.map(({ name }) => [name, parts[name] ?? ""] as const).filter(
      ([, text]) => text !== "",
    );
    const numbers = Object.fromEntries(given.map(([name, text]) => [name, Number(text)]));
    const tiers = row?.price.tiers;
    const price = { in: 0, out: 0, ...numbers, ...(tiers === undefined ? {} : { tiers }) };
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
        <Field label="Provider">
          <input
            required
            readOnly={row !== null}
            value={provider}
            placeholder="openai"
            onChange={({ target }) => setProvider(target.value)}
          />
        </Field>
        <Field label="Model" hint="* applies to all other models of the provider.">
          <input
            required
            readOnly={row !== null}
            value={model}
            placeholder="gpt-5"
            onChange={({ target }) => setModel(target.value)}
          />
        </Field>
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
    </FormDialog>
  );
}
