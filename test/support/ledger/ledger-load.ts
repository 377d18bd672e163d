/**
 * Clients of ledger instances that request effects until the server is gone and pass the responses to the models.
 * Responses that were in flight when the server died count: a client received them.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { LedgerAudit } from "../../fixtures/ledger-agent.ts";
import { LEDGER_IDLE_MS } from "../../fixtures/ledger.config.ts";
import type { LedgerModel } from "./ledger-model.ts";
import { pick, type Random } from "./random.ts";

/** Configuration of servers under this load. */
export const LEDGER_CONFIG = join(import.meta.dirname, "../../fixtures/ledger.config.ts");

const METHODS = [
  "record",
  "recordInSteps",
  "recordAndQueue",
  "recordAndSchedule",
  "recordAndBroadcast",
] as const;

/** Pauses are shorter and longer than the idle time after which instances leave memory. */
const MAX_PAUSE_MS = 4 * LEDGER_IDLE_MS;

export interface LedgerServer {
  readonly url: string;
  readonly token: string;
}

let effects = 0;

/** Runs clients on every instance; resolves when all of them have lost the server. */
export async function loadLedgers(
  server: LedgerServer,
  models: readonly LedgerModel[],
  random: Random,
): Promise<void> {
  await Promise.all(
    models.flatMap((model) =>
      model.isPausing
        ? [sendRequests(server, model, () => random() * MAX_PAUSE_MS)]
        : [
            watch(server, model),
            callMethods(server, model, random),
            callMethods(server, model, random),
            sendRequests(server, model, () => 0),
          ],
    ),
  );
}

/** Compares the audit of every instance with its model. */
export async function auditLedgers(server: LedgerServer, models: readonly LedgerModel[]): Promise<void> {
  await Promise.all(
    models.map(async (model) => {
      const socket = open(server, model);
      const audit = await new Promise<LedgerAudit>((resolve, reject) => {
        socket.once("open", () =>
          socket.send(JSON.stringify({ type: "rpc", id: "audit", method: "audit", args: model.known })),
        );
        socket.on("message", (data: Buffer) => {
          const frame = JSON.parse(data.toString()) as Frame;
          if (frame.type === "rpc" && frame.success) resolve(frame.result as LedgerAudit);
          else if (frame.type === "rpc") reject(new Error(`the audit failed: ${frame.error}`));
        });
        socket.once("close", (code) => reject(new Error(`the audit's connection was closed with ${code}`)));
      });
      socket.terminate();
      model.check(audit);
    }),
  );
}

type Frame =
  | { type: "cf_agent_state"; state: { count: number; last: string | null } }
  | { type: "rpc"; success: true; result: unknown }
  | { type: "rpc"; success: false; error: string }
  | { type?: undefined; broadcast: string };

async function watch(server: LedgerServer, model: LedgerModel): Promise<void> {
  const socket = open(server, model);
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Frame;
    if (frame.type === "cf_agent_state") model.sawState(frame.state);
    else if (frame.type === undefined) model.reported(frame.broadcast);
  });
  await closed(socket);
}

async function callMethods(server: LedgerServer, model: LedgerModel, random: Random): Promise<void> {
  const socket = open(server, model);
  let current = "";
  const next = () => {
    const method = pick(random, METHODS);
    current = `${method}-${effects++}`;
    model.sending(current);
    socket.send(JSON.stringify({ type: "rpc", id: current, method, args: [current] }));
  };
  socket.once("open", next);
  socket.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Frame;
    if (frame.type !== "rpc") return;
    if (frame.success) model.reported(current);
    next();
  });
  await closed(socket);
}

async function sendRequests(server: LedgerServer, model: LedgerModel, pauseMs: () => number): Promise<void> {
  for (;;) {
    const pause = pauseMs();
    if (pause > 0) await sleep(pause);
    const id = `onRequest-${effects++}`;
    model.sending(id);
    try {
      const response = await fetch(`${server.url}/agents/ledger/${model.name}`, {
        method: "POST",
        headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
        body: JSON.stringify({ id }),
      });
      if (response.ok) model.reported(id);
      await response.text();
    } catch {
      return;
    }
  }
}

function open(server: LedgerServer, model: LedgerModel): WebSocket {
  const socket = new WebSocket(`${server.url.replace(/^http/, "ws")}/agents/ledger/${model.name}`, {
    headers: { authorization: `Bearer ${server.token}` },
  });
  // Only the close event matters, which follows.
  socket.on("error", () => undefined);
  return socket;
}

function closed(socket: WebSocket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}
