/**
 * Deliveries that other nodes have not written: before a list, each node writes what waits, and answers with what it has in memory (rejected
 * deliveries, and those that it cannot write).
 */
import { SignalboxError } from "@signalbox/protocol";
import { awakeSignal } from "../core/awake-time.ts";
import type { OtherNodes } from "../contracts/other-nodes.ts";
import type { DeliveryFilter, DeliveryRecord } from "./delivery-record.ts";

const QUESTION = "webhooks.deliveries";
/** A node that has ended is no longer asked within this time. */
const MAX_WAIT_MS = 5000;

/** Which deliveries of an account a reader wants. */
export interface DeliveryQuery {
  readonly accountId: string;
  readonly filter: DeliveryFilter;
  /** With the body, which lists omit. */
  readonly id?: string;
  /** Only ids before, or after. */
  readonly before?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** A record as JSON: the body in base64. */
type RecordJson = Omit<DeliveryRecord, "body"> & { readonly body: string | null };

export class OtherDeliveries {
  readonly #nodes: OtherNodes;

  constructor(nodes: OtherNodes) {
    this.#nodes = nodes;
  }

  /** Answers other nodes with the result of `find`. */
  serve(find: (query: DeliveryQuery) => Promise<readonly DeliveryRecord[]>): void {
    this.#nodes.serve(QUESTION, async (payload) => {
      const records = await find(JSON.parse(payload.toString("utf8")) as DeliveryQuery);
      return Buffer.from(JSON.stringify(records.map(toJson)));
    });
  }

  /** Resolves when every other node has written what it had; with the records that it has in memory. */
  async ask(query: DeliveryQuery): Promise<DeliveryRecord[]> {
    let answers: Buffer[];
    try {
      const payload = Buffer.from(JSON.stringify(query));
      answers = await this.#nodes.askAll(QUESTION, payload, awakeSignal(MAX_WAIT_MS));
    } catch (cause) {
      throw new SignalboxError("storage_unavailable", {
        message: "The deliveries cannot be listed: another node does not answer",
        cause,
      });
    }
    return answers.flatMap((answer) => (JSON.parse(answer.toString("utf8")) as RecordJson[]).map(fromJson));
  }
}

function toJson(record: DeliveryRecord): RecordJson {
  const { body } = record;
  return { ...record, body: body === null ? null : Buffer.from(body).toString("base64") };
}

function fromJson(record: RecordJson): DeliveryRecord {
  return { ...record, body: record.body === null ? null : Buffer.from(record.body, "base64") };
}
