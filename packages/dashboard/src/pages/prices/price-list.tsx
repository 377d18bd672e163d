import type { PriceList } from "@signalbox/client";
import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import type { Resource } from "../../http/use-resource.ts";
import { partsOf } from "./price-rows.ts";

type PriceRow = PriceList["prices"][number];

/** A list has thousands of models; the filter finds the others. */
const MAX_ROWS = 100;
const MAX_NAMES = 20;

/** Where list prices come from, models in use without a price, and all prices. */
export function PriceListPanel({ of }: { readonly of: Resource<PriceList> }) {
  return (
    <section className="panel" aria-labelledby="price-list-title">
      <h2 id="price-list-title">All prices</h2>
      <ResourceView of={of}>
        {({ list, missing, prices }) => (
          <>
            <p>{originOf(list)}</p>
            {list.held.length > 0 && <p role="note">{heldText(list)}</p>}
            {missing.length > 0 && (
              <>
                <h3>Models in use without a price</h3>
                <Table
                  label="Models without a price"
                  rows={missing}
                  keyOf={({ provider, model }) => `${provider} ${model}`}
                  columns={[
                    { title: "Provider", cell: ({ provider }) => provider },
                    { title: "Model", cell: ({ model }) => model },
                    { title: "Calls in 30 days", align: "end", cell: ({ calls }) => calls },
                  ]}
                />
              </>
            )}
            <KnownPrices prices={prices} list={list} />
          </>
        )}
      </ResourceView>
    </section>
  );
}

function KnownPrices({ prices, list }: Pick<PriceList, "prices" | "list">) {
  const [isOpen, setOpen] = useState(false);
  const [filter, setFilter] = useState("");
  const words = filter.toLowerCase().split(/\s+/);
  const matching = prices.filter(({ provider, model }) =>
    words.every((word) => `${provider}/${model}`.toLowerCase().includes(word)),
  );
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{prices.length} known prices</summary>
      {isOpen && (
        <>
          <Field label="Filter by provider or model">
            <input type="search" value={filter} onChange={({ target }) => setFilter(target.value)} />
          </Field>
          {matching.length > MAX_ROWS && (
            <p>
              The first {MAX_ROWS} of {matching.length} prices.
            </p>
          )}
          <Table
            label="Known prices"
            rows={matching.slice(0, MAX_ROWS)}
            keyOf={({ provider, model, source }) => `${source} ${provider} ${model}`}
            columns={[
              { title: "Provider", cell: ({ provider }) => provider },
              { title: "Model", cell: ({ model }) => model },
              { title: "Source", cell: (row) => sourceOf(row, list) },
              { title: "US dollars", cell: ({ price }) => partsText(price) },
            ]}
          />
        </>
      )}
    </details>
  );
}

function partsText(price: PriceRow["price"]): string {
  return partsOf(price)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

function sourceOf({ source }: PriceRow, { read_at: readAt }: PriceList["list"]): string {
  if (source !== "list") return source;
  return readAt === null ? "list of the release" : `list of ${readAt.slice(0, 10)}`;
}

function originOf({ read_at: readAt, sha256 }: PriceList["list"]): string {
  if (readAt === null) return "List prices are those of this release.";
  return `List prices were read from the configured address on ${readAt.slice(0, 10)} (SHA-256 ${sha256 ?? ""}).`;
}

function heldText({ held }: PriceList["list"]): string {
  const names = held.slice(0, MAX_NAMES).map(({ provider, model }) => `${provider}/${model}`);
  const more = held.length > MAX_NAMES ? " and others" : "";
  return `${held.length} prices of the list move by more than three times and wait for gateway.priceList.acceptSha256: ${names.join(", ")}${more}.`;
}
