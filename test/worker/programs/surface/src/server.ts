/** Reports the members that a program finds, for the reference of the supported surface. */
import * as email from "cloudflare:email";
import * as node from "cloudflare:node";
import * as sockets from "cloudflare:sockets";
import * as workers from "cloudflare:workers";
import * as workflows from "cloudflare:workflows";

const ENDS = [Object.prototype, Function.prototype, EventTarget.prototype, Event.prototype];

/** Names of own and inherited members, without those that every object has. */
function members(value: object) {
  const names = new Set<string>();
  for (let holder = value; holder !== null && !ENDS.includes(holder); holder = Object.getPrototypeOf(holder))
    for (const name of Object.getOwnPropertyNames(holder)) names.add(name);
  names.delete("constructor");
  return [...names].sort();
}

export class Flow extends workers.WorkflowEntrypoint {
  async run(event, step) {
    return { event: members(event), step: members(step) };
  }
}

export class Probe extends workers.DurableObject {
  async report() {
    const { ctx } = this;
    const cursor = ctx.storage.sql.exec("SELECT 1 AS one");
    const pair = new WebSocketPair();
    let transaction: string[] = [];
    await ctx.storage.transaction(async (inner) => {
      transaction = members(inner);
    });
    return {
      ctx: members(ctx),
      "ctx.id": members(ctx.id),
      "ctx.storage": members(ctx.storage),
      "ctx.storage.transaction": transaction,
      "ctx.storage.sql": members(ctx.storage.sql),
      "ctx.storage.sql.exec()": members(cursor),
      "ctx.storage.kv": members(ctx.storage.kv),
      "ctx.facets": members(ctx.facets),
      WebSocket: members(pair[0]),
      WebSocketPair: members(pair),
    };
  }
}

const GLOBALS = [
  "WebSocketPair",
  "WebSocketRequestResponsePair",
  "HTMLRewriter",
  "IdentityTransformStream",
  "FixedLengthStream",
  "scheduler",
  "caches",
  "Cloudflare",
  "EventSource",
  "addEventListener",
  "reportError",
  "self",
];

export default {
  async fetch(request, env, ctx) {
    const probe = env.Probe.getByName("probe");
    const flow = await env.FLOW.create();
    let status = await flow.status();
    while (status.status !== "complete") {
      await scheduler.wait(10);
      status = await flow.status();
    }
    return Response.json({
      "cloudflare:workers": members(workers),
      "cloudflare:email": members(email),
      "cloudflare:workflows": members(workflows),
      "cloudflare:sockets": members(sockets),
      "cloudflare:node": members(node),
      globals: GLOBALS.filter((name) => name in globalThis),
      "ctx of handlers": members(ctx),
      namespace: members(env.Probe),
      ...(await probe.report()),
      "workflow binding": members(env.FLOW),
      "workflow instance": members(flow),
      "workflow event": status.output.event,
      step: status.output.step,
      "env.AI": members(env.AI),
      "env.AI.gateway()": members(env.AI.gateway("default")),
      "worker loader": members(env.LOADER),
      "loaded worker": members(env.LOADER.get("any", () => ({}))),
      "env.ASSETS": members(env.ASSETS),
    });
  },
};
