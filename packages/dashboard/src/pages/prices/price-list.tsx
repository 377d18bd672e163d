import type { PriceList } from "@signalbox/client";
import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { count, exactCount, moneyOf } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccountPaths } from "../../session/session.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import { partsOf, partText } from "./price-rows.ts";

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

const USED_MS = 7 * 86_400_000;

/** Calls and cost of the last seven days by provider and model. Undefined while they are being read. */
function useRecentUse(): ReadonlyMap<string, Usage> | undefined {
  const { api } = useAccountPaths();
  const path = withQuery(api("ai-gateway", "usage"), { group_by: "provider,model" });
  const usage = useResource(path, async (signal) => {
    const start = new Date(Date.now() - USED_MS).toISOString();
    const rows = await read<Usage[]>(withQuery(path, { start }), signal);
    return new Map(rows.map((row) => [`${row.provider ?? ""}/${row.model ?? ""}`, row]));
  });
  return usage.value;
}

function KnownPrices({ prices, list }: Pick<PriceList, "prices" | "list">) {
  const [chosen, setShown] = useState<"used" | "all" | null>(null);
  const [filter, setFilter] = useState("");
  const use = useRecentUse();
  const useOf = ({ provider, model }: PriceRow) => use?.get(`${provider}/${model}`);
  const used = prices
    .filter((row) => useOf(row) !== undefined)
    .toSorted((a, b) => (useOf(b)?.cost ?? 0) - (useOf(a)?.cost ?? 0));
  // An account that uses no listed model looks for prices.
  const shown = chosen ?? (use !== undefined && used.length === 0 ? "all" : "used");
  const words = filter.toLowerCase().split(/\s+/);
  // A search is for any price, whichever are shown without it.
  const rows = filter.trim() === "" && shown === "used" ? used : prices;
  const matching = rows.filter(({ provider, model }) =>
    words.every((word) => `${provider}/${model}`.toLowerCase().includes(word)),
  );
  const inView = matching.slice(0, MAX_ROWS);
  return (
    <>
      <div className="row spread">
        <div className="segments" role="group" aria-label="Prices to show">
          <button type="button" aria-pressed={shown === "used"} onClick={() => setShown("used")}>
            Used in the last 7 days{use !== undefined && ` (${used.length})`}
          </button>
          <button type="button" aria-pressed={shown === "all"} onClick={() => setShown("all")}>
            {exactCount(prices.length)} known prices
          </button>
        </div>
        <Field label="Filter prices">
          <input type="search" value={filter} onChange={({ target }) => setFilter(target.value)} />
        </Field>
      </div>
      {matching.length > MAX_ROWS && (
        <p className="muted small">
          The first {MAX_ROWS} of {exactCount(matching.length)} prices.
        </p>
      )}
      {matching.length === 0 ? (
        <p className="muted">
          {shown === "used" && filter.trim() === ""
            ? "No model with a known price was used in the last 7 days."
            : "No known price matches."}
        </p>
      ) : (
        <Table
          label="Known prices"
          rows={inView}
          keyOf={({ provider, model, source }) => `${source} ${provider} ${model}`}
          columns={[
            { title: "Provider", cell: ({ provider }) => provider },
            { title: "Model", cell: ({ model }) => <code>{model}</code> },
            ...MAIN_PARTS.map(({ title, names }) => {
              const format = moneyOf(inView.map(({ price }) => numberOf(mainPart(price, names))));
              return {
                title,
                align: "end" as const,
                cell: ({ price }: PriceRow) => <MainPart value={mainPart(price, names)} format={format} />,
              };
            }),
            {
              title: "Also",
              isMinor: true,
              isExtra: true,
              cell: ({ price }) => (
                <span className="cell-line cell-line-short">
                  <span className="cell-line-rest muted small" title={partsText(price)}>
                    {partsText(price)}
                  </span>
                </span>
              ),
            },
            {
              title: "Source",
              isMinor: true,
              cell: (row) => <span className="nowrap">{sourceOf(row, list)}</span>,
            },
            {
              title: "Calls, 7 d",
              align: "end",
              cell: (row) => {
                const calls = useOf(row)?.calls;
                return calls === undefined ? <span className="muted">–</span> : count(calls);
              },
            },
            {
              title: "Cost, 7 d",
              align: "end",
              amount: (row) => useOf(row)?.cost,
              formatOf: moneyOf,
            },
          ]}
        />
      )}
    </>
  );
}

/** US dollars per million tokens, by the names in prices of the account and in the list. */
const MAIN_PARTS: readonly { readonly title: string; readonly names: readonly string[] }[] = [
  { title: "In, per 1M", names: ["in", "input_mtok"] },
  { title: "Out, per 1M", names: ["out", "output_mtok"] },
  { title: "Cached", names: ["cached", "cache_read_mtok"] },
];

function mainPart(price: PriceRow["price"], names: readonly string[]): unknown {
  return names.map((name) => price[name]).find((part) => part !== undefined);
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function MainPart({
  value,
  format,
}: {
  readonly value: unknown;
  readonly format: (value: number) => string;
}) {
  if (typeof value === "number") return format(value);
  // A price by length of the prompt, for example.
  return <span className="muted">{value === undefined ? "–" : "tiers"}</span>;
}

function partsText(price: PriceRow["price"]): string {
  return partsOf(price)
    .filter(
      ([name]) => typeof price[name] !== "number" || !MAIN_PARTS.some(({ names }) => names.includes(name)),
    )
    .map(([name, value]) => partText(name, value))
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
