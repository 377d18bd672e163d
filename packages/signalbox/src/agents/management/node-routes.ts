/** Instances and the nodes of a cluster: which node has an instance, and moving it. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { InstanceNodes } from "../placement/instance-nodes.ts";
import type { InstanceAccess } from "./instance-access.ts";
import { defineInstanceRoute, INSTANCE, type InstanceRoute } from "./instance-route.ts";

/** The instances with the name of the node of each; without a cluster, as they are. */
export async function withNodes<Shown extends Pick<InstanceRef, "agent" | "name">>(
  nodes: InstanceNodes | null,
  account: string,
  shown: readonly Shown[],
): Promise<readonly Shown[]> {
  if (nodes === null) return shown;
  const names = await nodes.namesOf(shown.map(({ agent, name }) => ({ account, agent, name })));
  return shown.map((one, i) => ({ ...one, node: names[i] ?? null }));
}

export function targetsRoute(access: InstanceAccess, nodes: InstanceNodes | null): InstanceRoute {
  return defineInstanceRoute({
    method: "GET",
    path: `${INSTANCE}/move`,
    access: "agents.edit",
    summary:
      "List the nodes to which an instance can be moved; none if the server is not a node of a cluster.",
    result: z.array(z.object({ id: z.string(), name: z.string() })),
    handler: async (request) => {
      await access.entry(request.ref);
      return { result: (nodes?.targets ?? []).map(({ inc, name }) => ({ id: inc, name })) };
    },
  });
}

export function moveRoute(access: InstanceAccess, nodes: InstanceNodes | null): InstanceRoute {
  return defineInstanceRoute({
    method: "POST",
    effect: "action",
    path: `${INSTANCE}/move`,
    access: "agents.edit",
    summary:
      "Move an instance to another node of the cluster: `to` is the name or id of a node; without it one is selected.",
    body: z.strictObject({ to: z.string().min(1).max(256).optional() }),
    result: z.object({ agent: z.string(), name: z.string(), node: z.string() }),
    handler: async (request) => {
      const { account, agent, name } = await access.entry(request.ref);
      if (nodes === null)
        throw new SignalboxError("invalid_request", { message: "This server is not a node of a cluster" });
      const node = await nodes.move({ account, agent, name }, request.body.to);
      return { result: { agent, name, node } };
    },
  });
}
