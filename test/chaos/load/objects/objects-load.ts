/** Calls of objects of a worker program, each at any node, and the comparison of their rows with what the clients saw (`ChainModel`). */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pick } from "../../../support/ledger/random.ts";
import type { LoadTarget } from "../../cluster/load-target.ts";
import type { ChainAnswer, ChainAudit, WorkAudit } from "../agents/chain-agent.ts";
import { ChainModel } from "../agents/chain-model.ts";
import { Entities } from "../agents/entities.ts";
import { describe, type Outcome, send, wasKilled } from "../chaos-client.ts";
import { LateAnswers } from "../late-answers.ts";
import { anyNode, type LoadContext, mayBeRefused, type Workload } from "../workload.ts";

const OBJECTS = 12;
const MAX_PAUSE_MS = 50;
const PAGE = 2000;
const METHODS = ["append", "append", "read"] as const;
const PROGRAM = join(import.meta.dirname, "../../../worker/programs/ledger/src/server.ts");
/** An object has no work beside its calls here. */
const NO_WORK: WorkAudit = { activations: [], work: [], waiting: [], deadLetters: 0, connects: [] };

/** The part of the nodes' configuration. */
export const objectsConfig = { access: "worker", worker: { entry: PROGRAM } } as const;

export class ObjectsLoad implements Workload {
  readonly name = "objects";
  readonly needed = ["object events acknowledged", "object reads answered"];
  readonly warmUp = this.needed;
  readonly #context: LoadContext;
  readonly #callers: number;
  readonly #models: readonly ChainModel[];

  constructor(context: LoadContext, callers: number) {
    this.#context = context;
    this.#callers = callers;
    const report = (text: string) => context.history.violation(text);
    this.#models = Array.from({ length: OBJECTS }, (_, i) => new ChainModel(`object-${i}`, report));
  }

  async prepare(): Promise<void> {
    // Calls create the objects.
  }

  clients(): Promise<void>[] {
    const entities = new Entities(this.#models);
    return Array.from({ length: this.#callers }, (_, i) => this.#client(entities, i));
  }

  async settle(): Promise<void> {
    const { nodes, history } = this.#context;
    for (const [i, model] of this.#models.entries()) {
      const node = nodes[i % nodes.length] as LoadTarget;
      for (;;) {
        const before = model.known;
        const outcome = await call(node, model, "audit", [model.auditedSeq, PAGE]);
        if (outcome?.status !== 200) {
          const problem = outcome === null ? `${node.name} is down` : describe(outcome);
          history.violation(`the audit of ${model.name} failed: ${problem}`);
          return;
        }
        const { answer, events } = (outcome.body as { result: ChainAudit }).result;
        model.answered(answer, before, node.name);
        model.checkRows(events);
        if (events.length < PAGE) break;
      }
      model.checkEnd(NO_WORK);
      history.count("rows of objects", model.rows);
    }
  }

  async #client(entities: Entities, caller: number): Promise<void> {
    const { random, signal } = this.#context;
    const late = new LateAnswers();
    for (let number = 1; !signal.aborted; number++) {
      const method = pick(random, METHODS);
      await entities.use(random, async (model) => {
        await late.soon(this.#call(model, method, `o-${caller}-${number}`));
      });
      await sleep(random() * MAX_PAUSE_MS);
    }
    await late.all();
  }

  /** A call whose outcome is unknown is not repeated: it may have taken place, once. */
  async #call(model: ChainModel, method: (typeof METHODS)[number], id: string): Promise<void> {
    const { history } = this.#context;
    const before = model.known;
    if (method === "append") model.sending(id, "call");
    const outcome = await call(anyNode(this.#context), model, method, method === "append" ? [id] : []);
    if (outcome === null || wasKilled(outcome)) return;
    if (outcome.status === 200) {
      model.answered((outcome.body as { result: ChainAnswer }).result, before, outcome.node.name);
      if (method === "append") model.acknowledged(id);
      history.count(method === "append" ? "object events acknowledged" : "object reads answered");
    } else if (mayBeRefused(this.#context, outcome))
      history.count(`object calls refused with ${outcome.status}`);
    else history.violation(`an object's call failed: ${method} ${describe(outcome)}`);
  }
}

function call(
  node: LoadTarget,
  { name }: ChainModel,
  method: string,
  args: readonly unknown[],
): Promise<Outcome | null> {
  return send(node, {
    method: "POST",
    path: `/ledger/${name}/${method}`,
    text: JSON.stringify(args),
    headers: { "content-type": "application/json" },
  });
}
