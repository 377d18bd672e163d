/**
 * Keeps list prices up to date: reads a list from the configured address once a day, and stores what it took in the data folder. Off without an address.
 *
 * The list with the hash of the configuration (`acceptSha256`) is taken as it is. Of any other list, prices that move far wait (price-list.ts): the log
 * and the price list of the management interface name them with the hash of the list, which the operator then puts into the configuration.
 *
 * Invariants:
 * 1. A list that cannot be read or is refused changes nothing; the next attempt follows an hour later.
 * 2. What was taken survives a restart, and is used before the address is read again.
 */
import type { Provider } from "@pydantic/genai-prices";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../core/clock.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { replaceFile } from "../../engines/durable-file/index.ts";
import { type HeldPrice, mergePriceLists, parsePriceList } from "./price-list.ts";
import { presentPriceList, usePriceList } from "./prices-package.ts";

const DAY_MS = 86_400_000;
const CHECK_MS = 3_600_000;
const TIMEOUT_MS = 30_000;
/** The list of the package has about one megabyte. */
const MAX_BYTES = 16 * 1024 * 1024;
const FILE_NAME = "price-list.json";

export interface PriceRefreshParts {
  readonly url: string;
  /** Hash of a list whose prices are taken however far they move. */
  readonly acceptSha256: string | undefined;
  readonly dataDir: string;
  readonly clock: Clock;
  /** Other prices are in use now. */
  readonly onChanged: () => void;
  readonly onHeld: (held: readonly HeldPrice[], sha256: string) => void;
  readonly onError: (error: unknown) => void;
}

/** What was taken last. */
export interface TakenList {
  /** Of the text that was read. */
  readonly sha256: string;
  readonly readAt: number;
  readonly held: readonly HeldPrice[];
}

const storedForm = z.object({
  url: z.string(),
  sha256: z.string(),
  readAt: z.number(),
  isAccepted: z.boolean(),
  held: z.array(z.unknown()),
  providers: z.unknown(),
});

export class PriceRefresh {
  readonly #parts: PriceRefreshParts;
  #taken: (TakenList & { readonly isAccepted: boolean }) | null = null;
  #checks: Repetition | undefined;
  #first: Promise<void> | undefined;
  #before: readonly Provider[] | undefined;
  readonly #stopping = new AbortController();

  constructor(parts: PriceRefreshParts) {
    this.#parts = parts;
  }

  /** Null until a list was taken. */
  get taken(): TakenList | null {
    return this.#taken;
  }

  /** Uses the stored list; the address is read in the background. */
  async start(): Promise<void> {
    this.#before = await presentPriceList();
    await this.#load();
    const refresh = async () => {
      try {
        await this.refresh();
      } catch (error) {
        if (!this.#stopping.signal.aborted) this.#parts.onError(error);
      }
    };
    this.#first = refresh();
    this.#checks = repeat(CHECK_MS, refresh, this.#parts.onError);
  }

  /** Aborts a read that is under way. The list belongs to the process: what was in use before the start is in use again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#first;
    await this.#checks?.stop();
    if (this.#before !== undefined) usePriceList(this.#before);
  }

  /** Reads the address if the last list is a day old, or was not taken as the configuration accepts it now. */
  async refresh(): Promise<void> {
    const { clock, acceptSha256 } = this.#parts;
    const taken = this.#taken;
    const isFresh = taken !== null && Math.abs(clock.now() - taken.readAt) < DAY_MS;
    const isWaiting = taken !== null && taken.sha256 === acceptSha256 && !taken.isAccepted;
    if (isFresh && !isWaiting) return;
    this.#take(await this.#read(), await presentPriceList());
  }

  async #read(): Promise<string> {
    const response = await fetch(this.#parts.url, {
      redirect: "error",
      signal: AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    if (!response.ok) throw new Error(`the price list answered ${response.status}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk as Uint8Array);
      size += (chunk as Uint8Array).length;
      if (size > MAX_BYTES) throw new Error("the price list is too large");
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  #take(text: string, present: readonly Provider[]): void {
    const { url, acceptSha256, clock, dataDir, onChanged, onHeld } = this.#parts;
    const sha256 = createHash("sha256").update(text).digest("hex");
    const next = parsePriceList(text);
    const isAccepted = sha256 === acceptSha256;
    const { providers, held } = isAccepted ? { providers: next, held: [] } : mergePriceLists(present, next);
    usePriceList(providers);
    this.#taken = { sha256, readAt: clock.now(), held, isAccepted };
    onChanged();
    if (held.length > 0) onHeld(held, sha256);
    replaceFile(join(dataDir, FILE_NAME), JSON.stringify({ url, ...this.#taken, providers }));
  }

  /** A stored list that cannot be read, or is of another address, is as good as none: the address is read. */
  async #load(): Promise<void> {
    const { url, dataDir, onChanged, onError } = this.#parts;
    try {
      const stored = storedForm.parse(JSON.parse(await readFile(join(dataDir, FILE_NAME), "utf8")));
      if (stored.url !== url) return;
      usePriceList(parsePriceList(JSON.stringify(stored.providers)));
      const { sha256, readAt, isAccepted } = stored;
      this.#taken = { sha256, readAt, isAccepted, held: stored.held as HeldPrice[] };
      onChanged();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") onError(error);
    }
  }
}
