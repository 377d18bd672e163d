/**
 * Answers of translated calls of the responses dialect, kept for a while, so that a later request can refer to them: by the id of an item
 * (`item_reference`, which the AI SDK sends unless `store` is false), or by the id of the answer (`previous_response_id`). A provider of another dialect
 * knows neither, so the request is completed before it is translated. The answer itself can be read and deleted (`GET`, `DELETE /v1/responses/{id}`). Of an
 * answer that a provider keeps, the provider is remembered.
 *
 * Kept in the memory of this process only (other nodes ask for it: `door/other-nodes-answers.ts`), each answer for the caller that got it, for an
 * hour, within a bound; what was kept longest ago, or is too large, is not found. A request that refers to it gets OpenAI's error for a missing item.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import { type Fields, isFields } from "../../core/fields.ts";

const LIFETIME_MS = 3_600_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** A conversation with large files is not kept. */
const MAX_ENTRY_BYTES = 1024 * 1024;

export class KeptAnswers {
  /** JSON by caller, kind and id: of an item or of the list of all items up to the end of an answer, of an answer, and of the name of a provider. */
  readonly #kept: LRUCache<string, string>;

  constructor(clock: Clock, maxBytes = MAX_BYTES) {
    this.#kept = new LRUCache({
      maxSize: maxBytes,
      maxEntrySize: MAX_ENTRY_BYTES,
      sizeCalculation: (json, key) => json.length + key.length,
      ttl: LIFETIME_MS,
      ttlResolution: 0,
      perf: clock,
    });
  }

  /** What is kept for one caller. `scope` identifies the caller, `found` is what is kept elsewhere, by id. */
  of(scope: string, found: ReadonlyMap<string, unknown> = NOTHING): CallersAnswers {
    return {
      complete: (request) => this.#complete(scope, found, request),
      missing: (request) => this.#missing(scope, request),
      lookUp: (ids, maxBytes) => this.#lookUp(scope, ids, maxBytes),
      withFound: (more) => this.of(scope, more),
      keep: (request, answer) => this.#keep(scope, request, answer),
      keepState: (id, answer) => this.#put(scope, ANSWER + id, answer),
      find: (id) => this.#find(scope, ANSWER + id) as Fields | undefined,
      itemsBefore: (id) => this.#itemsBefore(scope, id),
      forget: (id) => {
        this.#kept.delete(`${scope} ${id}`);
        this.#kept.delete(`${scope} ${ANSWER}${id}`);
      },
      noteProvider: (id, slug) => this.#put(scope, PROVIDER + id, slug),
      providerOf: (id) => this.#find(scope, PROVIDER + id) as string | undefined,
    };
  }

  #complete(scope: string, found: ReadonlyMap<string, unknown>, request: Fields): Fields {
    const { previous_response_id: previous, input } = request;
    const items = itemsOf(input);
    const find = (id: string) => this.#find(scope, id) ?? found.get(id);
    const list = typeof previous === "string" ? find(previous) : undefined;
    const earlier = Array.isArray(list) ? (list as unknown[]) : undefined;
    if (earlier === undefined && !items.some((item) => referenceOf(item) !== null)) return request;
    const own = items.map((item) => resolve(item, find));
    if (earlier === undefined) return { ...request, input: own };
    const { previous_response_id: _, ...rest } = request;
    return { ...rest, input: [...earlier, ...own] };
  }

  #missing(scope: string, { previous_response_id: previous, input }: Fields): string[] {
    const named = itemsOf(input).flatMap((item) => referenceOf(item) ?? []);
    if (typeof previous === "string") named.push(previous);
    return [...new Set(named)].filter((id) => !this.#kept.has(`${scope} ${id}`));
  }

  #lookUp(scope: string, ids: readonly string[], maxBytes: number): ReadonlyMap<string, unknown> {
    const found = new Map<string, unknown>();
    let rest = maxBytes;
    for (const id of ids) {
      const json = this.#kept.get(`${scope} ${id}`);
      rest -= json?.length ?? 0;
      if (rest < 0) break;
      if (json !== undefined) found.set(id, JSON.parse(json));
    }
    return found;
  }

  #find(scope: string, id: string): unknown {
    const json = this.#kept.get(`${scope} ${id}`);
    return json === undefined ? undefined : JSON.parse(json);
  }

  /** `request` is the completed one. */
  #keep(scope: string, request: Fields, answer: Fields): void {
    const { id, output } = answer;
    if (request["store"] === false || typeof id !== "string" || !Array.isArray(output)) return;
    for (const item of output as unknown[]) {
      if (isFields(item) && typeof item["id"] === "string") this.#put(scope, item["id"], item);
    }
    this.#put(scope, id, [...itemsOf(request["input"]), ...(output as unknown[])]);
    this.#put(scope, ANSWER + id, answer);
  }

  #itemsBefore(scope: string, id: string): readonly unknown[] {
    const answer = this.#find(scope, ANSWER + id) as Fields | undefined;
    const all = (this.#find(scope, id) ?? []) as readonly unknown[];
    const output = answer?.["output"];
    return all.slice(0, all.length - (Array.isArray(output) ? output.length : 0));
  }

  #put(scope: string, id: string, value: unknown): void {
    this.#kept.set(`${scope} ${id}`, JSON.stringify(value));
  }
}

const NOTHING: ReadonlyMap<string, unknown> = new Map();

/** The id that an item refers to; null for an item that is no reference. */
function referenceOf(item: unknown): string | null {
  const isReference = isFields(item) && item["type"] === "item_reference";
  return isReference && typeof item["id"] === "string" ? item["id"] : null;
}

/** An item that is not found stays as it is: the translation refuses it. */
function resolve(item: unknown, find: (id: string) => unknown): unknown {
  const id = referenceOf(item);
  const found = id === null ? undefined : find(id);
  return isFields(found) ? found : item;
}

/** No id contains a space. */
const ANSWER = "answer ";
const PROVIDER = "provider ";

export interface CallersAnswers {
  /** The request with the items that it refers to. */
  complete(request: Fields): Fields;
  /** The ids that the request refers to and that are not kept here. */
  missing(request: Fields): readonly string[];
  /** What is kept under these ids; the first ones up to a bound. */
  lookUp(ids: readonly string[], maxBytes: number): ReadonlyMap<string, unknown>;
  /** The same with what other nodes keep. */
  withFound(found: ReadonlyMap<string, unknown>): CallersAnswers;
  /** Keeps an answer to the completed request, unless the request forbids it. */
  keep(request: Fields, answer: Fields): void;
  /** Keeps what is known of an answer that is not complete. */
  keepState(id: string, answer: Fields): void;
  /** The answer with this id; undefined if it is not kept. */
  find(id: string): Fields | undefined;
  /** The items that the answer with this id answers. */
  itemsBefore(id: string): readonly unknown[];
  forget(id: string): void;
  /** Remembers which provider keeps an answer. */
  noteProvider(id: string, slug: string): void;
  providerOf(id: string): string | undefined;
}

function itemsOf(input: unknown): readonly unknown[] {
  if (typeof input === "string") return [{ type: "message", role: "user", content: input }];
  return Array.isArray(input) ? (input as unknown[]) : [];
}

const LAST_EVENT = /^event: response\.(?:completed|incomplete)\ndata: (.*)$/m;

/** The answer in the last event of a stream, if the text contains that event. */
export function readLastEvent(text: string): Fields | null {
  if (!text.includes("event: response.")) return null;
  const data = LAST_EVENT.exec(text)?.[1];
  const response = data === undefined ? undefined : (JSON.parse(data) as Fields)["response"];
  return isFields(response) ? response : null;
}
