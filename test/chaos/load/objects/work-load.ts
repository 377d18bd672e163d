/**
 * Work that nobody asks for again: workflows with a pause between two steps, and alarms of objects. What was answered with success happens, although
 * its node is killed, paused or cut off, and nobody touches it afterwards: the oracle waits, and then looks once.
 *
 * An alarm takes effect once. A step of a workflow may run again if its node was lost before the result was stored.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { pick } from "../../../support/ledger/random.ts";
import type { LoadTarget } from "../../cluster/load-target.ts";
import { describe, type Outcome, send, wasKilled } from "../chaos-client.ts";
import { LateAnswers } from "../late-answers.ts";
import { anyNode, type LoadContext, mayBeRefused, type Workload } from "../workload.ts";

/** Objects that take receipts of workflows, and those that arm their own alarm. */
const RECEIPTS = ["errands-0", "errands-1", "errands-2"];
const ALARMS = ["alarms-0", "alarms-1", "alarms-2", "alarms-3"];
const MAX_PAUSE_MS = 400;
/** Longer than the time within which a node finds due work that nothing has announced. */
const WAIT_MS = 70_000;

interface Seen {
  readonly receipts: Readonly<Record<string, number>>;
  readonly due: number;
}

export class WorkLoad implements Workload {
  readonly name = "work";
  readonly needed = ["workflows begun", "alarms set"];
  readonly warmUp = this.needed;
  readonly #context: LoadContext;
  /** Acknowledged, by the object that has the receipt. */
  readonly #errands = new Map(RECEIPTS.map((name) => [name, [] as string[]]));
  readonly #alarms = new Map(ALARMS.map((name) => [name, [] as string[]]));

  constructor(context: LoadContext) {
    this.#context = context;
  }

  async prepare(): Promise<void> {
    // Requests create the objects.
  }

  clients(): Promise<void>[] {
    return [
      this.#client("errand", this.#errands, "workflows begun", (receipts, id) => [
        "/errands/all/begin",
        [{ id, receipts }],
      ]),
      this.#client("alarm", this.#alarms, "alarms set", (object, id) => [`/receipts/${object}/arm`, [id]]),
    ];
  }

  async settle(): Promise<void> {
    await sleep(WAIT_MS);
    const { history } = this.#context;
    for (const [object, ids] of this.#errands) {
      const { receipts } = await this.#look(object);
      for (const id of ids) {
        const ended = receipts[`${id} ended`] ?? 0;
        if (ended === 0) history.violation(`the workflow ${id} was begun and has not ended`);
        if (ended > 1) history.count("steps of workflows that ran again");
      }
      history.count("workflows ended", ids.length);
    }
    for (const [object, ids] of this.#alarms) {
      const { receipts, due } = await this.#look(object);
      for (const id of ids) {
        const times = receipts[id] ?? 0;
        if (times !== 1) history.violation(`the alarm ${id} of ${object} took effect ${times} times`);
      }
      if (due > 0) history.violation(`${due} alarms of ${object} wait`);
      history.count("alarms that took effect", ids.length);
    }
  }

  async #look(object: string): Promise<Seen> {
    const { nodes, history } = this.#context;
    const outcome = await post(nodes[0] as LoadTarget, `/receipts/${object}/all`, []);
    if (outcome?.status === 200) return (outcome.body as { result: Seen }).result;
    history.violation(
      `${object} cannot be read: ${outcome === null ? "the node is down" : describe(outcome)}`,
    );
    return { receipts: {}, due: 0 };
  }

  async #client(
    kind: string,
    acknowledged: ReadonlyMap<string, string[]>,
    counted: string,
    toRequest: (object: string, id: string) => [path: string, args: unknown[]],
  ): Promise<void> {
    const { random, signal, history } = this.#context;
    const late = new LateAnswers();
    const one = async (id: string) => {
      const object = pick(random, [...acknowledged.keys()]);
      const outcome = await post(anyNode(this.#context), ...toRequest(object, id));
      if (outcome === null || wasKilled(outcome)) return;
      if (outcome.status === 200) {
        acknowledged.get(object)?.push(id);
        history.count(counted);
      } else if (!mayBeRefused(this.#context, outcome))
        history.violation(`an ${kind} failed: ${describe(outcome)}`);
    };
    for (let number = 1; !signal.aborted; number++) {
      await late.soon(one(`${kind}-${number}`));
      await sleep(random() * MAX_PAUSE_MS);
    }
    await late.all();
  }
}

function post(node: LoadTarget, path: string, args: readonly unknown[]): Promise<Outcome | null> {
  return send(node, {
    method: "POST",
    path,
    text: JSON.stringify(args),
    headers: { "content-type": "application/json" },
  });
}
