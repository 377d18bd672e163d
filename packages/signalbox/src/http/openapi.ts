/** Builds the OpenAPI description of the management interface from the routes. */
import { ERROR_TABLE } from "@signalbox/protocol";
import { toJSONSchema, type ZodType } from "zod";
import { codeSamples, type OperationExample, readOperationExamples } from "./operation-examples.ts";
import type { Route } from "./route.ts";
import { gatewayBinding, knownParameters } from "./route-rules.ts";

export function buildOpenApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  const examples = readOperationExamples();
  for (const route of routes) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = toOperation(route, examples[`${route.method} ${route.path}`]);
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

/** A route without an example is described without one; a test finds it. */
function toOperation(route: Route, example: OperationExample | undefined): object {
  return {
    summary: route.summary,
    operationId: operationId(route),
    tags: [route.path.split("/")[3]?.replace(/[{}]/g, "") ?? "accounts"],
    description: `Requires: ${route.access}.`,
    "x-signalbox-access": route.access,
    "x-signalbox-gateway": gatewayBinding(route),
    ...(example === undefined ? {} : { "x-codeSamples": codeSamples(route.method, route.path, example) }),
    parameters: [...pathParameters(route.path, example), ...queryParameters(route, example)],
    ...requestBody(route.body ?? route.documents?.body, example),
    responses: {
      200: { description: "Success", content: successContent(route, example) },
      default: {
        description: "Failure",
        content: {
          "application/json": {
            schema: { $ref: "#/components/schemas/Failure" },
            ...(example?.refused === undefined ? {} : { example: example.answer }),
          },
        },
      },
    },
  };
}

function requestBody(body: ZodType | undefined, example: OperationExample | undefined): object {
  if (body === undefined) return {};
  const sent = example?.body === undefined ? {} : { example: example.body };
  return {
    requestBody: { required: true, content: { "application/json": { schema: jsonSchema(body), ...sent } } },
  };
}

const JSON_TYPE = "application/json";

/** The envelope, unless the answer of the example is of another type. */
function successContent(route: Route, example: OperationExample | undefined): object {
  if (example === undefined || example.refused !== undefined)
    return { [JSON_TYPE]: { schema: successSchema(route.result) } };
  const { contentType, answer } = example;
  const isEnvelope = typeof answer === "object" && answer !== null && "success" in answer;
  // A stored body is JSON of its own, and a stream or a download is text.
  const schema = isEnvelope
    ? successSchema(route.result)
    : contentType === JSON_TYPE
      ? {}
      : { type: "string" };
  return { [contentType]: { schema, ...(answer === undefined ? {} : { example: answer }) } };
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

function pathParameters(path: string, example: OperationExample | undefined): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
    ...(example === undefined ? {} : { example: example.params[name] }),
  }));
}

function queryParameters(route: Route, example: OperationExample | undefined): object[] {
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
      schema: route.repeatable?.includes(name) === true ? listOf(property) : property,
      ...(example?.query[name] === undefined ? {} : { example: example.query[name] }),
    }),
  );
}

function listOf(schema: { readonly type?: string }): object {
  return schema.type === "array" ? schema : { type: "array", items: schema };
}

interface ParametersSchema {
  readonly properties?: Record<string, { readonly type?: string }>;
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
