import { expect, it } from "vitest";
import type { RouteRequest } from "../../http/route.ts";
import { defineInstanceRoute, INSTANCE, toRoute } from "./instance-route.ts";

const fields = { method: "GET", access: "agents.read", summary: "Things." } as const;
const ref = { account: "a", agent: "counter", name: "one" };

it("the handler of an instance's route receives what travels to the owner, and nothing of the caller", async () => {
  const route = defineInstanceRoute({
    ...fields,
    path: `${INSTANCE}/things/{thing_id}`,
    handler: (request) => ({ result: { ...request, id: request.params.thing_id } }),
  });
  const params = { account_id: "a", agent_name: "counter", instance_name: "one", thing_id: "t" };
  const carried = { params, query: { q: 1 }, body: { b: 2 }, signal: new AbortController().signal };
  const request = {
    ...carried,
    id: "request",
    principal: { kind: "root" },
    headers: { accept: "text/plain", authorization: "Bearer secret" },
  } as unknown as RouteRequest;
  const served = toRoute(
    route,
    () => ref,
    (received) => route.handler(received),
  );
  expect((await served.handler(request)).result).toEqual({ ...carried, ref, accept: "text/plain", id: "t" });
});

it("a handler that needs more does not compile", () => {
  defineInstanceRoute({
    ...fields,
    path: INSTANCE,
    // @ts-expect-error The principal stays at the node that has checked it.
    handler: ({ principal }) => ({ result: principal }),
  });
  defineInstanceRoute({
    ...fields,
    path: INSTANCE,
    // @ts-expect-error The path has no such parameter.
    handler: ({ params }) => ({ result: params.thing_id }),
  });
  defineInstanceRoute({
    ...fields,
    path: INSTANCE,
    // @ts-expect-error A function for a request of this node cannot run at another one.
    handler: ({ trafficOrigin }: RouteRequest) => ({ result: trafficOrigin }),
  });
});
