/** Instances and the nodes of a cluster: which node has an instance, and moving it. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { defineRoute, type Reply, type Route } from "../../http/route.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { InstanceNodes } from "../placement/instance-nodes.ts";
import { accountOf, INSTANCE, type InstanceAccess } from "./instance-access.ts";

/** The route with the node of each instance in its result. */
export function withNodes(nodes: InstanceNodes | null, route: Route): Route {
  if (nodes === null) return route;
  return {
    ...route,
    handler: async (request) => {
      const reply = await route.handler(request);
      return addNodes(nodes, accountOf(request), reply);
    },
  };
}

type Shown = Pick<InstanceRef, "agent" | "name">;

async function addNodes(nodes: InstanceNodes, account: string, reply: Reply): Promise<Reply> {
  const isList = Array.isArray(reply.result);
  const shown = [reply.result as Shown | Shown[]].flat();
  const names = await nodes.namesOf(shown.map(({ agent, name }) => ({ account, agent, name })));
  const result = shown.map((one, i) => ({ ...one, node: names[i] ?? null }));
  return { ...reply, result: isList ? result : result[0] };
}

export function targetsRoute(access: InstanceAccess, nodes: InstanceNodes | null): Route {
  return defineRoute({
    method: "GET",
    path: `${INSTANCE}/move`,
    access: "agents.edit",
    summary:
      "List the nodes to which an instance can be moved; none if the server is not a node of a cluster.",
    result: z.array(z.object({ id: z.string(), name: z.string() })),
    handler: async (request) => {
      await access.entry(request);
      return { result: (nodes?.targets ?? []).map(({ inc, name }) => ({ id: inc, name })) };
    },
  });
}

export function moveRoute(access: InstanceAccess, nodes: InstanceNodes | null): Route {
  return defineRoute({
    method: "POST",
    effect: "action",
    path: `${INSTANCE}/move`,
    access: "agents.edit",
    summary:
      "Move an instance to another node of the cluster: `to` is the name or id of a node; without it one is selected.",
    body: z.strictObject({ to: z.string().min(1).max(256).optional() }),
    result: z.object({ agent: z.string(), name: z.string(), node: z.string() }),
    handler: async (request) => {
      const { account, agent, name } = await access.entry(request);
      if (nodes === null)
        throw new SignalboxError("invalid_request", { message: "This server is not a node of a cluster" });
      const node = await nodes.move({ account, agent, name }, request.body.to);
      return { result: { agent, name, node } };
    },
  });
}
