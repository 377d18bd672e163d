/**
 * Stores what the answers of providers say about stored keys: at once that a provider refuses a key or has accepted it for the first time, which all
 * nodes must know, and every minute when keys were used. Of a key in a variable or file only its use is stored: the variable can be corrected only by a
 * restart, which then must find the key active.
 */
import { repeat, type Repetition } from "../../core/repeat.ts";
import type { Database } from "../../database/database.ts";
import type { SharedSettings } from "../../database/shared-settings.ts";
import type { HealthChange, KeyOutcome } from "./key-health.ts";
import { markInvalid, markUsed, markWorked } from "./provider-key.ts";
import type { PoolKey } from "./provider-key-pool.ts";

const USE_FLUSH_MS = 60_000;

export interface StoredHealthParts {
  readonly database: Database;
  readonly settings: SharedSettings;
  readonly onError: (error: unknown) => void;
}

export class StoredHealth {
  readonly #parts: StoredHealthParts;
  readonly #used = new Set<PoolKey>();
  #flushing: Repetition | undefined;

  constructor(parts: StoredHealthParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#flushing = repeat(USE_FLUSH_MS, () => this.#flushUses(), this.#parts.onError);
  }

  async stop(): Promise<void> {
    await this.#flushing?.stop();
    await this.#flushUses();
  }

  store(found: PoolKey, change: HealthChange, { status, model }: KeyOutcome, now: number): void {
    const { key } = found;
    if (change === "used" || change === "worked") this.#used.add(found);
    if (change === "none" || change === "used" || key.secretId !== null) return;
    // A 403 for a model concerns only the model if the key has worked at another node.
    const mayHaveWorked = status !== 403 || model === "";
    const statement = change === "invalid" ? markInvalid(key, now, mayHaveWorked) : markWorked(key, now);
    this.#parts.settings
      .write("provider_key", async (tx, changed) => {
        await tx.run(statement);
        // Even if another node was faster: this one then learns what it did.
        changed(key.id);
      })
      .catch(this.#parts.onError);
  }

  /** A use that could not be written is kept for the next time. */
  async #flushUses(): Promise<void> {
    const uses = [...this.#used];
    for (const found of uses) {
      const { key, health } = found;
      this.#used.delete(found);
      try {
        await this.#parts.database.run(markUsed(key, health.usedAt ?? 0));
      } catch (error) {
        this.#used.add(found);
        throw error;
      }
    }
  }
}
