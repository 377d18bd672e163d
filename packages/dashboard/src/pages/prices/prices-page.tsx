import type { ModelPrice, PriceTable } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useAccount, useHasPermission } from "../../session/session.ts";
import { FindPrice } from "./find-price.tsx";
import { PriceDialog } from "./price-dialog.tsx";
import { PriceListPanel } from "./price-list.tsx";
import { type OwnPrice, partsOf, pricesOf, withEditedPrice, withoutPrice } from "./price-rows.ts";

type Shown = { kind: "edit"; row: OwnPrice | null } | { kind: "remove"; row: OwnPrice } | null;

/** The account's own prices, which price a model has, and all known prices. */
export function PricesPage() {
  const account = useAccount();
  const canEdit = useHasPermission("gateway.edit");
  const prices = useResource(`prices ${account.id}`, (signal) => account.budgets.prices({ signal }));
  const list = useResource(`price list ${account.id}`, (signal) =>
    account.budgets.priceList(undefined, { signal }),
  );
  const [dialog, setDialog] = useState<Shown>(null);
  const close = () => setDialog(null);
  const save = async (change: (table: PriceTable) => PriceTable) => {
    await account.budgets.changePrices(change);
    prices.reload();
    list.reload();
  };
  return (
    <>
      <PageHeader
        title="Prices"
        actions={
          canEdit && (
            <Button kind="primary" onClick={() => setDialog({ kind: "edit", row: null })}>
              Set price
            </Button>
          )
        }
      >
        Prices of the account replace list prices, for example for models of your own and negotiated rates.
      </PageHeader>
      <FindPrice />
      <ResourceView of={prices}>
        {(table) =>
          Object.keys(table).length === 0 ? (
            <EmptyState title="No prices of your own">
              <p>Calls have the price that the provider reports, or the list price of their model.</p>
            </EmptyState>
          ) : (
            <Table
              label="Prices"
              rows={pricesOf(table)}
              keyOf={({ provider, model }) => `${provider} ${model}`}
              columns={[
                { title: "Provider", cell: ({ provider }) => provider },
                { title: "Model", cell: ({ model }) => (model === "*" ? "* (all others)" : model) },
                { title: "US dollars per million tokens", cell: ({ price }) => <PriceParts price={price} /> },
                {
                  title: "Actions",
                  isAction: true,
                  cell: (row) =>
                    canEdit && (
                      <span className="row nowrap-row">
                        <Button size="small" onClick={() => setDialog({ kind: "edit", row })}>
                          Edit<span className="visually-hidden"> {row.model}</span>
                        </Button>
                        <Button size="small" onClick={() => setDialog({ kind: "remove", row })}>
                          Remove<span className="visually-hidden"> {row.model}</span>
                        </Button>
                      </span>
                    ),
                },
              ]}
            />
          )
        }
      </ResourceView>
      <PriceListPanel of={list} />
      {dialog?.kind === "edit" && (
        <PriceDialog
          row={dialog.row}
          onSave={(row) => save((table) => withEditedPrice(table, dialog.row, row))}
          onClose={close}
        />
      )}
      {dialog?.kind === "remove" && (
        <ConfirmDialog
          title={`Remove the price of ${dialog.row.model}?`}
          verb="Remove"
          onConfirm={() => save((table) => withoutPrice(table, dialog.row))}
          onClose={close}
        >
          <p>The next call has the price of the configuration, the provider or the list.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

function PriceParts({ price }: { readonly price: ModelPrice }) {
  return partsOf(price)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}
