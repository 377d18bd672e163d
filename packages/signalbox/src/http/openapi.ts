/** Builds the OpenAPI description of the management interface from the routes. */
import { ERROR_TABLE } from "@signalbox/protocol";
import { toJSONSchema, type ZodType } from "zod";
import type { Route } from "./route.ts";
import { gatewayBinding, knownParameters } from "./route-rules.ts";

export function buildOpenApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = toOperation(route);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Signalbox management interface", version },
    security: [{ token: [] }],
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Failure: FAILURE },
    },
    paths,
  };
}

const FAILURE = {
  type: "object",
  required: ["success", "errors", "messages", "result"],
  properties: {
    success: { const: false },
    errors: {
      type: "array",
      items: {
        type: "object",
        required: ["code", "message"],
        properties: {
          code: { type: "integer", enum: Object.values(ERROR_TABLE).map((entry) => entry.code) },
          message: { type: "string" },
        },
      },
    },
    messages: { type: "array", items: { type: "string" } },
    result: { type: "null" },
  },
};

function toOperation(route: Route): object {
  return {
    summary: route.summary,
    operationId: operationId(route),
    tags: [route.path.split("/")[3]?.replace(/[{}]/g, "") ?? "accounts"],
    description: `Requires: ${route.access}.`,
    "x-signalbox-access": route.access,
    "x-signalbox-gateway": gatewayBinding(route),
    parameters: [...pathParameters(route.path), ...queryParameters(route)],
    ...requestBody(route.body ?? route.documents?.body),
    responses: {
      200: {
        description: "Success",
        content: { "application/json": { schema: successSchema(route.result) } },
      },
      default: {
        description: "Failure",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
      },
    },
  };
}

function requestBody(body: ZodType | undefined): object {
  if (body === undefined) return {};
  return {
    requestBody: { required: true, content: { "application/json": { schema: jsonSchema(body) } } },
  };
}

function successSchema(result: ZodType | undefined): object {
  return {
    type: "object",
    required: ["success", "errors", "messages", "result"],
    properties: {
      success: { const: true },
      errors: { type: "array", maxItems: 0 },
      messages: { type: "array", items: { type: "string" } },
      result: result === undefined ? {} : jsonSchema(result),
      result_info: { type: "object" },
    },
  };
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(route: Route): object[] {
  const query = route.query ?? route.documents?.query;
  const schema = query === undefined ? {} : (jsonSchema(query) as ParametersSchema);
  const described = Object.entries(schema.properties ?? {});
  const names = new Set(described.map(([name]) => name));
  const others = (knownParameters(route) ?? []).filter((name) => !names.has(name));
  return [...described, ...others.map((name) => [name, { type: "string" }] as const)].map(
    ([name, property]) => ({
      name,
      in: "query",
      required: schema.required?.includes(name) ?? false,
      schema: property,
    }),
  );
}

interface ParametersSchema {
  readonly properties?: Record<string, object>;
  readonly required?: string[];
}

function operationId(route: Route): string {
  const words = route.path.split(/[/{}_.-]+/).filter((word) => word !== "");
  return [route.method.toLowerCase(), ...words]
    .map((word, i) => (i === 0 ? word : word[0]?.toUpperCase() + word.slice(1)))
    .join("");
}

function jsonSchema(schema: ZodType): object {
  return toJSONSchema(schema, { io: "input", unrepresentable: "any" });
}
