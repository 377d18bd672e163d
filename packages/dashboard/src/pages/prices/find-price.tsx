import type { FoundPrice } from "@signalbox/client";
import { type FormEvent, useState } from "react";
import { Button } from "../../components/button.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { ModelFields } from "../../components/model-fields.tsx";
import { useAction } from "../../http/use-action.ts";
import { useAccount } from "../../session/session.ts";
import { partsOf } from "./price-rows.ts";

const SOURCES: Readonly<Record<FoundPrice["source"], string>> = {
  account: "price of the account",
  configuration: "price of the configuration",
  list: "list price",
  unknown: "no known price",
};

/** Shows the price that a call of one model has. */
export function FindPrice() {
  const account = useAccount();
  const [provider, setProvider] = useState("");
  const [model, setModel] = useState("");
  const [found, setFound] = useState<FoundPrice | null>(null);
  const find = useAction(async () => {
    // An old price below an error looks like the price of the model that was asked for.
    setFound(null);
    setFound(await account.budgets.findPrice(provider.trim(), model.trim()));
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void find.run();
  };
  return (
    <section className="panel" aria-labelledby="find-price-title">
      <h2 id="find-price-title">Find a price</h2>
      <form onSubmit={submit} className="filters">
        <ModelFields provider={provider} model={model} onProvider={setProvider} onModel={setModel} />
        <Button type="submit" isBusy={find.isBusy}>
          Find price
        </Button>
      </form>
      {find.error !== null && <ErrorNotice error={find.error} />}
      <div role="status">
        {found !== null && (
          <>
            <p>
              <strong>
                {found.provider}/{found.model}
              </strong>
              : {SOURCES[found.source]}
            </p>
            {found.price !== null && <DetailList items={partsOf(found.price)} />}
          </>
        )}
      </div>
    </section>
  );
}
