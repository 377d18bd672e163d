/** Ties an `Agent` object to its instance: what the class offers, in terms of the instance's parts. */
import { SignalboxError } from "@signalbox/protocol";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { SqlValue } from "../../core/sql.ts";
import type { AgentHost } from "../api/agent-host.ts";
import type { Connection } from "../api/connection.ts";
import { currentTurn, type OutputGate, type Transactions } from "../../engines/turn-runtime/index.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import { deliverInTurn } from "./delivery.ts";
import type { DeliveryLedger } from "./delivery-ledger.ts";
import type { Instance } from "./instance.ts";
import type { InstanceState } from "./instance-state.ts";
import type { LiveConnection } from "../connections/live-connection.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WorkQueue } from "../work/work-queue.ts";

export interface HostParts {
  readonly state: InstanceState;
  readonly workQueue: WorkQueue;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly ledger: DeliveryLedger;
  readonly gate: OutputGate;
  readonly database: InstanceDatabase;
  readonly transactions: Transactions;
}

export function createHost(instance: Instance, parts: HostParts): AgentHost {
  const { definition, environment, group, ref } = instance;
  const { state, gate, database, transactions } = parts;
  return {
    account: ref.account,
    agent: ref.agent,
    name: ref.name,
    isNew: database.isNew,
    startedWith: database.isNew ? definition.initialSchema : "",
    env: environment.variables,
    logger: environment.logger,
    workQueue: parts.workQueue,
    deadLetters: parts.deadLetters,
    schedules: parts.schedules,
    ledger: parts.ledger,
    now: () => environment.clock.now(),
    deliver: (event) => deliverInTurn(instance, event),
    readState: () => state.value,
    writeState: (next, source) => writeState(instance, state, next, source),
    query(sqlParts, values) {
      const statement = database.agentStatement(sqlParts);
      if (statement.isWrite) transactions.open();
      return statement.all(values.map(toSqlValue));
    },
    mayInsert: (sqlParts, table) => database.agentStatement(sqlParts).mayInsert(table),
    checkMethod(name) {
      if (!definition.hasMethod(name))
        throw new TypeError(`${definition.className} has no method "${name}" of its own`);
    },
    isStarting: () => instance.isStarting,
    broadcast: (message, withoutIds) => group.broadcast(message, withoutIds),
    connections: (tag) => group.list(tag),
    connection: (id) => group.find(id),
    setReadonly(connection, isReadonly) {
      (connection as LiveConnection).isReadonly = isReadonly;
    },
    isReadonly: (connection) => (connection as LiveConnection).isReadonly,
    async sendWebhook(url, payload, options) {
      // Serialised now: what the caller changes later is not what it asked to send.
      const body = JSON.stringify(payload ?? null);
      await gate.pass();
      return environment.outgoing.send({ url, body, ...options });
    },
    async fetch(input, init) {
      await gate.pass();
      return fetch(input, init);
    },
    async destroy() {
      await instance.requestDestroy();
    },
  };
}

/** The hook throws to refuse a state. A client that is refused is no failure of the agent's, to be logged and handed to `onError`. */
function validateForClient(instance: Instance, next: unknown, source: Connection): void {
  try {
    instance.parts.agent.validateStateChange(next, source);
  } catch (cause) {
    if (cause instanceof SignalboxError) throw cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new SignalboxError("invalid_request", { message, cause });
  }
}

/** Validates, stores, announces, in this order; `source` does not get its own change back. */
export function writeState(
  instance: Instance,
  state: InstanceState,
  next: unknown,
  source: Connection | "server",
): void {
  const { agent } = instance.parts;
  if (source === "server") agent.validateStateChange(next, source);
  else validateForClient(instance, next, source);
  const json = state.set(next);
  const frame = `{"type":"cf_agent_state","state":${json}}`;
  instance.group.broadcast(frame, source === "server" ? [] : [source.id]);
  instance.activity.recordState(
    instance.environment.clock.now(),
    json.length,
    source === "server" ? "server" : source.id,
  );
  if (!instance.definition.hasStateHook) return;
  try {
    const pending = agent.onStateChanged(next, source);
    if (!(pending instanceof Promise)) return;
    // The hook belongs to the turn that changed the state, which ends when the hook has.
    const followUp = pending.catch((error: unknown) => instance.reportHookError(error, "onStateChanged"));
    const turn = currentTurn();
    if (turn !== undefined) (turn.followUps ??= []).push(followUp);
  } catch (error) {
    instance.reportHookError(error, "onStateChanged");
  }
}

function toSqlValue(value: unknown): SqlValue {
  switch (typeof value) {
    case "string":
    case "number":
    case "bigint":
      return value;
    case "boolean":
      return value ? 1 : 0;
    default:
      if (value === null || value instanceof Uint8Array) return value;
  }
  throw new SignalboxError("agent_sql", {
    message: `SQL values are text, numbers, booleans, null or bytes, not ${value === undefined ? "undefined" : typeof value}`,
  });
}
