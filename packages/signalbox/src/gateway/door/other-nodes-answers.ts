/**
 * Answers that other nodes keep: a request may reach another node than the one that gave the answer it refers to. A node that does not have what is wanted
 * asks all others. Nothing is copied for longer than the request, so that an answer that changes or is deleted does so at one place.
 */
import { type ErrorName, SignalboxError } from "@signalbox/protocol";
import type { OtherNodes } from "../../contracts/other-nodes.ts";
import { awakeSignal } from "../../core/awake-time.ts";
import type { KeptAnswers } from "../exchange/kept-answers.ts";
import type { KeptRequest } from "./kept-response.ts";

const ITEMS = "gateway.kept-items";
const RESPONSE = "gateway.kept-response";
/** A node that has ended is no longer asked within this time. */
const MAX_WAIT_MS = 5000;
/** More than a conversation has. */
const MAX_IDS = 1000;
/** Less than a call between nodes may have. */
const MAX_BYTES = 16 * 1024 * 1024;

/** What a node says about a response: its own answer to the request, or which provider keeps it. */
export type KeptElsewhere =
  | { readonly kind: "answer"; readonly answer: object }
  | {
      readonly kind: "error";
      readonly id: ErrorName;
      readonly message: string;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: "provider"; readonly slug: string }
  | { readonly kind: "unknown" };

interface ItemsQuestion {
  readonly scope: string;
  readonly ids: readonly string[];
}

interface ResponseQuestion {
  readonly scope: string;
  readonly wanted: Omit<KeptRequest, "query"> & { readonly query: string };
}

export class OtherNodesAnswers {
  readonly #nodes: OtherNodes | null;

  /** `answer` does at this node what a request for a response wants. Null: there are no other nodes. */
  constructor(
    nodes: OtherNodes | null,
    kept: KeptAnswers,
    answer: (scope: string, wanted: KeptRequest) => KeptElsewhere,
  ) {
    this.#nodes = nodes;
    nodes?.serve(ITEMS, async (payload) => {
      const { scope, ids } = JSON.parse(payload.toString()) as ItemsQuestion;
      return Buffer.from(JSON.stringify([...kept.of(scope).lookUp(ids, MAX_BYTES)]));
    });
    nodes?.serve(RESPONSE, async (payload) => {
      const { scope, wanted } = JSON.parse(payload.toString()) as ResponseQuestion;
      const found = answer(scope, { ...wanted, query: new URLSearchParams(wanted.query) });
      return Buffer.from(JSON.stringify(found));
    });
  }

  /** What other nodes keep under these ids. */
  async items(scope: string, ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
    const answers = await this.#ask<[string, unknown][]>(ITEMS, { scope, ids: ids.slice(0, MAX_IDS) });
    return new Map(answers.flat());
  }

  /** At most one node has the response, others may know its provider. */
  async response(scope: string, wanted: KeptRequest): Promise<KeptElsewhere> {
    const question: ResponseQuestion = { scope, wanted: { ...wanted, query: String(wanted.query) } };
    const answers = await this.#ask<KeptElsewhere>(RESPONSE, question);
    const known = answers.filter(({ kind }) => kind !== "unknown");
    return known.find(({ kind }) => kind !== "provider") ?? known[0] ?? { kind: "unknown" };
  }

  async #ask<Answer>(name: string, question: object): Promise<Answer[]> {
    if (this.#nodes === null) return [];
    try {
      const payload = Buffer.from(JSON.stringify(question));
      const answers = await this.#nodes.askAll(name, payload, awakeSignal(MAX_WAIT_MS));
      return answers.map((answer) => JSON.parse(answer.toString()) as Answer);
    } catch (cause) {
      throw new SignalboxError("storage_unavailable", {
        message: "An earlier answer cannot be looked up: another node does not answer",
        cause,
      });
    }
  }
}
