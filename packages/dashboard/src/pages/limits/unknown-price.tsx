import type { SpendLimits } from "@signalbox/client";
import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { useAction } from "../../http/use-action.ts";

type Choice = NonNullable<SpendLimits["unknown_price"]>;

interface UnknownPriceProps {
  readonly value: Choice;
  readonly canEdit: boolean;
  readonly onSave: (value: Choice) => Promise<void>;
}

/** What a call under a limit on cost counts when its price is not known. */
export function UnknownPrice({ value, canEdit, onSave }: UnknownPriceProps) {
  const [kind, setKind] = useState<"block" | "allow" | "price">(typeof value === "object" ? "price" : value);
  const [price, setPrice] = useState(
    typeof value === "object" ? { in: String(value.in), out: String(value.out) } : { in: "", out: "" },
  );
  const save = useAction(() =>
    onSave(kind === "price" ? { in: Number(price.in), out: Number(price.out) } : kind),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void save.run();
  };
  return (
    <section className="panel" aria-labelledby="unknown-price-title">
      <h2 id="unknown-price-title">Calls without a known price</h2>
      <form onSubmit={submit} className="stack">
        <fieldset className="fieldset" disabled={!canEdit}>
          <legend className="visually-hidden">Calls without a known price</legend>
          <div className="form-grid">
            <Field label="Under a limit on cost">
              <select value={kind} onChange={({ target }) => setKind(target.value as typeof kind)}>
                <option value="block">Refuse the call</option>
                <option value="allow">Allow it and count nothing</option>
                <option value="price">Count with this price</option>
              </select>
            </Field>
            {kind === "price" &&
              (["in", "out"] as const).map((side) => (
                <Field
                  key={side}
                  label={`${side === "in" ? "Input" : "Output"} (US dollars per million tokens)`}
                >
                  <input
                    type="number"
                    required
                    min={0}
                    step="any"
                    value={price[side]}
                    onChange={({ target }) => setPrice({ ...price, [side]: target.value })}
                  />
                </Field>
              ))}
          </div>
        </fieldset>
        {save.error !== null && <ErrorNotice error={save.error} />}
        {canEdit && (
          <div className="row">
            <Button type="submit" isBusy={save.isBusy}>
              Save
            </Button>
          </div>
        )}
      </form>
    </section>
  );
}
