/** Events, calls and sockets of agents, and the comparison of their rows with what the clients saw. The rules are those of `ChainModel`. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LoadTarget } from "../../cluster/load-target.ts";
import { describe, request } from "../chaos-client.ts";
import { anyNode, type LoadContext, type Workload } from "../workload.ts";
import type { ChainAudit, WorkAudit } from "./chain-agent.ts";
import { ChainModel } from "./chain-model.ts";
import { Entities } from "./entities.ts";
import { sendDeliveries, WEBHOOK_SECRET } from "./delivery-sender.ts";
import { callMethod, callMethods } from "./method-caller.ts";
import { Watcher } from "./watcher.ts";

export interface AgentsLoadOptions {
  readonly entities: number;
  readonly senders: number;
  readonly callers: number;
  readonly watchers: number;
  /** Between two requests of a client. */
  readonly maxPauseMs: number;
}

/** Rows of one answer of an audit. */
const PAGE = 2000;
/** Between two audits during the run. */
const AUDIT_PAUSE_MS = 100;
/** Between two looks at the sockets. */
const PROGRESS_MS = 500;
/** Work that ran later than this is named in the report. */
const NOTABLE_MS = 30_000;
/** For stored deliveries, work and sockets at the end. */
const SETTLE_MS = 90_000;

/** The part of the nodes' configuration. Instances leave memory soon, so that they are also woken from their files. */
export const agentsConfig = {
  agents: { modules: [join(import.meta.dirname, "chain-agent.ts")], idleTimeoutMs: 2000 },
  webhooks: { sources: { chain: { scheme: "generic", agent: "chain" } } },
} as const;

export const agentsEnvironment = { CHAIN_WEBHOOK_SECRET: WEBHOOK_SECRET } as const;

export class AgentsLoad implements Workload {
  readonly name = "agents";
  readonly needed = [
    "events acknowledged",
    "agents' reads answered",
    "states received",
    "work done",
    "activations",
  ];
  readonly warmUp = ["events acknowledged", "agents' reads answered", "states received"];
  readonly #context: LoadContext;
  readonly #options: AgentsLoadOptions;
  readonly #models: readonly ChainModel[];
  readonly #watchers: readonly Watcher[];

  /** Sockets are opened at the nodes of `watched`, requests are sent to those of `context`. */
  constructor(context: LoadContext, options: AgentsLoadOptions, watched: LoadContext = context) {
    this.#context = context;
    this.#options = options;
    const report = (text: string) => context.history.violation(text);
    this.#models = Array.from({ length: options.entities }, (_, i) => new ChainModel(`entity-${i}`, report));
    this.#watchers = Array.from(
      { length: options.watchers },
      (_, i) => new Watcher(watched, this.#models[i % options.entities] as ChainModel, `w-${i}`),
    );
  }

  async prepare(): Promise<void> {
    // Events create the instances.
  }

  clients(): Promise<void>[] {
    const { senders, callers, maxPauseMs } = this.#options;
    const entities = new Entities(this.#models);
    return [
      ...Array.from({ length: senders }, (_, i) => sendDeliveries(this.#context, entities, i, maxPauseMs)),
      ...Array.from({ length: callers }, (_, i) => callMethods(this.#context, entities, i, maxPauseMs)),
      ...this.#watchers.map((watcher) => watcher.run()),
      this.#auditAlong(),
      this.#watchProgress(),
    ];
  }

  /** Checks the rows while there is load, so that a long run shows at once what went wrong. */
  async #auditAlong(): Promise<void> {
    const { signal, history } = this.#context;
    while (!signal.aborted) {
      for (const model of this.#models) {
        if (signal.aborted) break;
        const before = model.known;
        const outcome = await callMethod(anyNode(this.#context), model.name, "audit", [
          model.auditedSeq,
          PAGE,
        ]);
        if (outcome?.status === 200) {
          const audit = (outcome.body as { result: ChainAudit }).result;
          model.answered(audit.answer, before, outcome.node.name);
          model.checkRows(audit.events);
          history.count("rows checked during the run", audit.events.length);
        }
        await sleep(AUDIT_PAUSE_MS);
      }
    }
  }

  async #watchProgress(): Promise<void> {
    while (!this.#context.signal.aborted) {
      for (const watcher of this.#watchers) watcher.checkProgress();
      await sleep(PROGRESS_MS);
    }
  }

  async settle(): Promise<void> {
    const deadline = performance.now() + SETTLE_MS;
    await this.#untilHandled(deadline);
    for (const [i, model] of this.#models.entries()) {
      const node = this.#context.nodes[i % this.#context.nodes.length] as LoadTarget;
      await this.#audit(model, node, deadline);
    }
    await this.#checkConvergence(deadline);
    for (const watcher of this.#watchers) watcher.close();
  }

  /** Deliveries that were answered 202 are handled. */
  async #untilHandled(deadline: number): Promise<void> {
    const { nodes, history } = this.#context;
    const path = "/accounts/default/webhooks/late-deliveries";
    for (;;) {
      const answer = await request(nodes[0] as LoadTarget, { method: "GET", path });
      const waiting = (answer?.body as { result?: unknown[] } | undefined)?.result;
      if (waiting?.length === 0) return;
      if (performance.now() > deadline) {
        history.violation(`stored deliveries are not handled: ${JSON.stringify(answer?.body).slice(0, 500)}`);
        return;
      }
      await sleep(200);
    }
  }

  async #audit(model: ChainModel, node: LoadTarget, deadline: number): Promise<void> {
    const { history } = this.#context;
    let work = await this.#read<WorkAudit>(model, node, "auditWork", []);
    while (work !== null && work.waiting.length > 0 && performance.now() < deadline) {
      await sleep(200);
      work = await this.#read<WorkAudit>(model, node, "auditWork", []);
    }
    for (;;) {
      const before = model.known;
      const audit = await this.#read<ChainAudit>(model, node, "audit", [model.auditedSeq, PAGE]);
      if (audit === null) return;
      model.answered(audit.answer, before, node.name);
      model.checkRows(audit.events);
      if (audit.events.length < PAGE) break;
    }
    if (work === null) return;
    model.checkEnd(work);
    history.count("rows", model.rows);
    history.count("activations", work.activations.length);
    history.count("activations in another process", moves(work));
    history.count("work done", work.work.length);
    history.count("sockets whose onConnect ran again", work.connects.filter(({ times }) => times > 1).length);
    history.max("latest work, ms", Math.max(0, ...work.work.map(({ lateMs }) => lateMs)));
    for (const { id, lateMs } of work.work)
      if (lateMs > NOTABLE_MS) history.note(`${id} of ${model.name} ran ${lateMs} ms late`);
  }

  async #checkConvergence(deadline: number): Promise<void> {
    const isBehind = ({ seq, model }: Watcher) => seq !== null && model.rows > 0 && seq !== model.auditedSeq;
    while (this.#watchers.some(isBehind) && performance.now() < deadline) await sleep(200);
    for (const watcher of this.#watchers) {
      if (watcher.seq === null) continue;
      this.#context.history.count("sockets open at the end");
      if (isBehind(watcher))
        this.#context.history.violation(
          `a socket did not converge: ${watcher.seq} instead of ${watcher.model.auditedSeq} (${String(watcher)})`,
        );
    }
  }

  async #read<T>(
    model: ChainModel,
    node: LoadTarget,
    method: string,
    args: readonly unknown[],
  ): Promise<T | null> {
    const outcome = await callMethod(node, model.name, method, args);
    if (outcome?.status === 200) return (outcome.body as { result: T }).result;
    this.#context.history.violation(
      `the audit of ${model.name} failed: ${outcome === null ? `${node.name} is down` : describe(outcome)}`,
    );
    return null;
  }
}

/** How often an activation ran in another process than the one before. */
function moves({ activations }: WorkAudit): number {
  return activations.filter((activation, i) => i > 0 && activation.process !== activations[i - 1]?.process)
    .length;
}
