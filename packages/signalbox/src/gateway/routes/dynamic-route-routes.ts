/**
 * Management routes of dynamic routes, compatible with the `aiGateway.dynamicRouting` resource of the public `cloudflare` SDK. Some of its methods
 * read other members than `result` (`data`, `route`), so these responses contain both.
 */
import { setImmediate } from "node:timers/promises";
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { isAllowed } from "../../accounts/index.ts";
import { defineRoute, type Reply, type Route } from "../../http/route.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Gateways } from "../settings/gateways.ts";
import { pageOf, pageQuery } from "../page.ts";
import { type GatewayParams, GATEWAYS_PATH, requireGateway } from "../settings/gateway-routes.ts";
import type { DynamicRoute, DynamicRoutes, RouteDeployment, RouteVersion } from "./dynamic-routes.ts";
import { parseTrial, tryRoute } from "./try-route.ts";

const PATH = `${GATEWAYS_PATH}/{gateway_id}/routes`;
const ONE = `${PATH}/{route_id}`;

/** The graph is checked by `parseGraph`, whose errors name the element. */
const elements = z.array(z.unknown());
const creation = z.strictObject({ name: z.string(), elements });
const renaming = z.strictObject({ name: z.string() });
const newVersion = z.strictObject({ elements });
const newDeployment = z.strictObject({ version_id: z.string() });

const deployment = z.object({
  deployment_id: z.string(),
  version_id: z.string(),
  created_at: z.iso.datetime(),
});
const version = z.object({
  version_id: z.string(),
  active: z.enum(["true", "false"]),
  /** The elements as text. */
  data: z.string(),
  is_valid: z.boolean(),
  created_at: z.iso.datetime(),
});
const result = z.object({
  id: z.string(),
  account_tag: z.string(),
  gateway_id: z.string(),
  name: z.string(),
  elements,
  deployment,
  version,
  created_at: z.iso.datetime(),
  modified_at: z.iso.datetime(),
});
const versionResult = result.omit({ deployment: true, version: true }).extend(version.shape);

const trial = z.strictObject({
  elements: elements.optional(),
  version_id: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.unknown().optional(),
  token: z.record(z.string(), z.unknown()).optional(),
  session_id: z.string().max(512).optional(),
  /** Models that fail in this trial. */
  failing: z.array(z.string()).max(200).optional(),
});
const trialResult = z.object({
  way: z.array(z.object({ id: z.string(), type: z.string(), output: z.string().nullable() })),
  provider: z.string().nullable(),
  model: z.string().nullable(),
  error: z.string().nullable(),
});

export function dynamicRouteRoutes(gateways: Gateways, routes: DynamicRoutes): Route[] {
  const show = (route: DynamicRoute) => showRoute(routes, route);
  return [
    defineRoute({
      method: "GET",
      path: PATH,
      access: "gateway.read",
      summary: "List the dynamic routes of a gateway.",
      query: pageQuery,
      result: z.array(result),
      handler: ({ params, query }) => {
        const { items, resultInfo } = pageOf(routes.list(requireGateway(gateways, params)), query);
        const shown = items.map(show);
        return withMembers(shown, { data: { routes: shown, ...listInfo(query) } }, resultInfo);
      },
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: PATH,
      access: "gateway.edit",
      summary: "Create a dynamic route and deploy it. Clients call it as the model `dynamic/{name}`.",
      body: creation,
      result,
      handler: async ({ params, body }) => ({
        result: show(await routes.create(requireGateway(gateways, params), body.name, body.elements)),
      }),
    }),
    defineRoute({
      method: "GET",
      path: ONE,
      access: "gateway.read",
      summary: "Read a dynamic route with its deployed version.",
      result,
      handler: ({ params }) => ({
        result: show(routes.get(requireGateway(gateways, params), params.route_id)),
      }),
    }),
    defineRoute({
      method: "PATCH",
      path: ONE,
      access: "gateway.edit",
      summary: "Rename a dynamic route. To change its graph, create and deploy a version.",
      body: renaming,
      result,
      handler: async ({ params, body }) => {
        const gateway = requireGateway(gateways, params);
        const route = show(await routes.rename(gateway, params.route_id, body.name));
        return withMembers(route, { route });
      },
    }),
    defineRoute({
      method: "DELETE",
      path: ONE,
      access: "gateway.edit",
      summary: "Delete a dynamic route with its versions.",
      result,
      handler: async ({ params }) => ({
        result: show(await routes.delete(requireGateway(gateways, params), params.route_id)),
      }),
    }),
    ...versionRoutes(gateways, routes),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${ONE}/try`,
      acceptsNul: true,
      access: "gateway.read",
      summary:
        "Show which way a request would take through a dynamic route. No model is called, and rate elements do not count. `elements` needs gateway.edit.",
      body: trial,
      result: trialResult,
      handler: async ({ params, body, principal }) => {
        const gateway = requireGateway(gateways, params);
        // Who may read runs what editors have saved, and no conditions of its own.
        if (body.elements !== undefined && !isAllowed(principal, gateway.accountId, "gateway.edit"))
          throw new SignalboxError("forbidden", { message: "A trial of other elements needs gateway.edit" });
        const route = routes.get(gateway, params.route_id);
        const graph =
          body.elements === undefined
            ? routes.graphOf(
                gateway.accountId,
                body.version_id === undefined
                  ? route.version
                  : await routes.getVersion(gateway, route.id, body.version_id),
              )
            : routes.compile(gateway.accountId, body.elements);
        return { result: tryRoute(graph, route.id, parseTrial(body)) };
      },
    }),
  ];
}

function versionRoutes(gateways: Gateways, routes: DynamicRoutes): Route[] {
  return [
    defineRoute({
      method: "GET",
      path: `${ONE}/versions`,
      access: "gateway.read",
      summary: "List the versions of a dynamic route, newest first.",
      result: z.array(version),
      handler: async ({ params }) => {
        const { gateway, route } = find(gateways, routes, params);
        const versions: z.input<typeof version>[] = [];
        for (const one of await routes.listVersions(gateway, route.id)) {
          versions.push(showVersion(routes, route, one));
          // Each graph is compiled to see whether it is valid, and there may be thousands.
          await setImmediate();
        }
        return withMembers(versions, { data: { versions, ...wholeList(versions) } });
      },
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: `${ONE}/versions`,
      access: "gateway.edit",
      summary: "Save a version of a dynamic route. It serves no call until it is deployed.",
      body: newVersion,
      result: versionResult,
      handler: async ({ params, body }) => {
        const { gateway, route } = find(gateways, routes, params);
        return {
          result: showWhole(routes, route, await routes.createVersion(gateway, route.id, body.elements)),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${ONE}/versions/{version_id}`,
      access: "gateway.read",
      summary: "Read a version of a dynamic route.",
      result: versionResult,
      handler: async ({ params }) => {
        const { gateway, route } = find(gateways, routes, params);
        const found = await routes.getVersion(gateway, route.id, params.version_id);
        return { result: showWhole(routes, route, found) };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${ONE}/deployments`,
      access: "gateway.read",
      summary: "List the deployments of a dynamic route, newest first.",
      result: z.array(deployment),
      handler: async ({ params }) => {
        const { gateway, route } = find(gateways, routes, params);
        const deployments = (await routes.listDeployments(gateway, route.id)).map(showDeployment);
        return withMembers(deployments, { data: { deployments, ...wholeList(deployments) } });
      },
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: `${ONE}/deployments`,
      access: "gateway.edit",
      summary:
        "Deploy a version of a dynamic route: the next call takes it. Deploy an earlier version to roll back.",
      body: newDeployment,
      result,
      handler: async ({ params, body }) => {
        const { gateway, route } = find(gateways, routes, params);
        return { result: showRoute(routes, await routes.deploy(gateway, route.id, body.version_id)) };
      },
    }),
  ];
}

function find(
  gateways: Gateways,
  routes: DynamicRoutes,
  params: GatewayParams & { readonly route_id: string },
): { gateway: Gateway; route: DynamicRoute } {
  const gateway = requireGateway(gateways, params);
  return { gateway, route: routes.get(gateway, params.route_id) };
}

/** The envelope with further members beside `result`. */
function withMembers(shown: unknown, members: object, resultInfo?: object): Reply {
  const envelope = {
    result: shown,
    success: true,
    errors: [],
    messages: [],
    ...(resultInfo === undefined ? {} : { result_info: resultInfo }),
    ...members,
  };
  return { raw: { contentType: "application/json", body: JSON.stringify(envelope) } };
}

function listInfo({ page, per_page }: { readonly page: number; readonly per_page: number }): object {
  return { order_by: "created_at", order_by_direction: "asc", page, per_page };
}

function wholeList(items: readonly unknown[]): object {
  return { order_by: "created_at", order_by_direction: "desc", page: 1, per_page: items.length };
}

function showRoute(routes: DynamicRoutes, route: DynamicRoute): z.input<typeof result> {
  return {
    ...showHead(route),
    elements: [...route.version.elements],
    deployment: showDeployment(route.deployment),
    version: showVersion(routes, route, route.version),
  };
}

/** A version as a resource of its own. */
function showWhole(
  routes: DynamicRoutes,
  route: DynamicRoute,
  one: RouteVersion,
): z.input<typeof versionResult> {
  return { ...showHead(route), elements: [...one.elements], ...showVersion(routes, route, one) };
}

function showHead({ id, accountId, gatewayId, name, createdAt, modifiedAt }: DynamicRoute) {
  return {
    id,
    account_tag: accountId,
    gateway_id: gatewayId,
    name,
    created_at: new Date(createdAt).toISOString(),
    modified_at: new Date(modifiedAt).toISOString(),
  };
}

function showVersion(routes: DynamicRoutes, route: DynamicRoute, one: RouteVersion): z.input<typeof version> {
  return {
    version_id: one.id,
    active: one.id === route.version.id ? "true" : "false",
    data: JSON.stringify(one.elements),
    is_valid: routes.isValid(route.accountId, one),
    created_at: new Date(one.createdAt).toISOString(),
  };
}

function showDeployment({ id, versionId, createdAt }: RouteDeployment): z.input<typeof deployment> {
  return { deployment_id: id, version_id: versionId, created_at: new Date(createdAt).toISOString() };
}
