import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { NO_USAGE } from "../../engines/relay/index.ts";
import type { HeldPrice } from "./price-list.ts";
import { PriceRefresh } from "./price-refresh.ts";
import { PriceTable } from "./price-table.ts";
import { presentPriceList, usePriceList } from "./prices-package.ts";

let server: Server;
let folder: string;
let served: string;
let reads = 0;
let now = Date.UTC(2026, 10, 18);
const clock = { now: () => now };
const MILLION = { ...NO_USAGE, tokensIn: 1_000_000 };

beforeAll(async () => {
  server = createServer((_, response) => {
    reads += 1;
    response.statusCode = served === "" ? 503 : 200;
    response.end(served);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-prices-"));
  const release = await presentPriceList();
  return async () => {
    usePriceList(release);
    await rm(folder, { recursive: true, force: true });
  };
});

/** A list with this price of one model. */
async function serve(model: string, inputPrice: number): Promise<string> {
  const providers = (await presentPriceList()).map((provider) =>
    provider.id !== "openai"
      ? provider
      : {
          ...provider,
          models: [
            ...provider.models.filter(({ id }) => id !== model),
            {
              id: model,
              match: { equals: model },
              prices: { input_mtok: inputPrice, output_mtok: inputPrice },
            },
          ],
        },
  );
  served = JSON.stringify(providers);
  return createHash("sha256").update(served).digest("hex");
}

function create(acceptSha256?: string) {
  const prices = new PriceTable({}, clock);
  const held: HeldPrice[] = [];
  const errors: unknown[] = [];
  const refresh = new PriceRefresh({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/data.json`,
    acceptSha256,
    dataDir: folder,
    clock,
    onChanged: () => prices.forgetListPrices(),
    onHeld: (all) => held.push(...all),
    onError: (error) => errors.push(error),
  });
  return { refresh, held, errors, costOf: (model: string) => prices.costOf("openai", model, MILLION) };
}

it("takes new models and small changes, once a day, and keeps them over a restart", async () => {
  const { refresh, costOf } = create();
  expect(costOf("model-of-tomorrow")).toBeNull();
  const hash = await serve("model-of-tomorrow", 2);
  await refresh.refresh();
  expect(costOf("model-of-tomorrow")).toBe(2);
  expect(refresh.taken).toMatchObject({ sha256: hash, readAt: now, held: [] });
  const before = reads;
  await refresh.refresh();
  expect(reads).toBe(before);
  now += 86_400_000;
  await serve("model-of-tomorrow", 5);
  await refresh.refresh();
  expect(costOf("model-of-tomorrow")).toBe(5);
  served = "";
  const restarted = create();
  await restarted.refresh.start();
  expect(restarted.costOf("model-of-tomorrow")).toBe(5);
  await restarted.refresh.stop();
  expect(restarted.errors).toEqual([]);
});

it("holds a price that moves far, until its list is accepted by hash", async () => {
  const { refresh, held, costOf } = create();
  await serve("mover", 1);
  await refresh.refresh();
  now += 86_400_000;
  const hash = await serve("mover", 4);
  await refresh.refresh();
  expect(costOf("mover")).toBe(1);
  expect(held).toMatchObject([{ provider: "openai", model: "mover" }]);
  expect(refresh.taken?.held).toHaveLength(1);
  const accepting = create(hash);
  await accepting.refresh.start();
  await expect.poll(() => accepting.costOf("mover")).toBe(4);
  expect(accepting.refresh.taken?.held).toEqual([]);
  await accepting.refresh.stop();
});

it("keeps the present prices if the address fails or sends something else", async () => {
  const { refresh, costOf } = create();
  const before = costOf("gpt-5");
  for (const text of ["", "<html>", "[]"]) {
    served = text;
    await expect(refresh.refresh()).rejects.toThrow();
  }
  expect(costOf("gpt-5")).toBe(before);
  expect(refresh.taken).toBeNull();
});
