/**
 * What servers of the Model Context Protocol are asked, by the client of each of the two SDKs that are in use: 1.x begins with `initialize`, 2.x with `server/discover` and falls back to it.
 * Each lists the tools and calls some, with arguments made from their schemas.
 */
import {
  Client as LaterClient,
  StreamableHTTPClientTransport as LaterTransport,
} from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const PATIENCE_MS = 45_000;
/** Some tools need a service that is not there: one of the next ones may not. */
const MAX_TRIED = 8;
const ASKER = { name: "asker", version: "1.0.0" };
const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: ASKER },
};

/** The parts that both clients have. */
interface AnyClient {
  getServerVersion(): { readonly name: string } | undefined;
  listTools(): Promise<{ readonly tools: readonly Tool[] }>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}

interface Tool {
  readonly name: string;
  readonly inputSchema: unknown;
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** Null: no MCP server answers there. Throws if one does, and a client of either generation gets no answer from it, unless the server says that it does not speak to that one. */
export async function askMcp(url: string): Promise<string | null> {
  const probe = await initialize(url);
  if (probe.status === 401) return "MCP server that asks for a token";
  if (!probe.text.includes('"jsonrpc"') || probe.status === 404 || probe.status === 405) return null;
  const answers: string[] = [];
  for (const [generation, connect] of Object.entries(CLIENTS)) {
    const speaks = generation === "2.x" || probe.text.includes("serverInfo");
    answers.push(speaks ? await converse(generation, connect, url) : `${generation} refused`);
  }
  return answers.join("; ");
}

async function initialize(url: string): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(url, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify(INITIALIZE),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  let text = "";
  const decoder = new TextDecoder();
  // A stream of events may stay open.
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.includes('"jsonrpc"') && text.includes("\n\n")) break;
  }
  return { status: response.status, text };
}

const CLIENTS: Readonly<Record<string, (url: URL) => Promise<AnyClient>>> = {
  async "1.x"(url) {
    const client = new Client(ASKER, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => accept(params));
    await client.connect(new StreamableHTTPClientTransport(url));
    return client;
  },
  async "2.x"(url) {
    const client = new LaterClient(ASKER, {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: "auto" },
    });
    client.setRequestHandler("elicitation/create", ({ params }) => accept(params));
    await client.connect(new LaterTransport(url));
    return client;
  },
};

/** Fills in the form that a tool shows. */
function accept(params: object): { action: "accept"; content: Record<string, string | number | boolean> } {
  const { requestedSchema } = params as { readonly requestedSchema?: Schema };
  return {
    action: "accept",
    content: sampleOf(requestedSchema ?? {}) as Record<string, string | number | boolean>,
  };
}

async function converse(
  generation: string,
  connect: (url: URL) => Promise<AnyClient>,
  url: string,
): Promise<string> {
  try {
    const client = await connect(new URL(url));
    try {
      const { tools } = await client.listTools();
      const name = client.getServerVersion()?.name ?? "without a name";
      return `MCP server ${name} (${generation}): ${tools.length} tools, ${await callOne(client, tools)}`;
    } finally {
      await client.close();
    }
  } catch (error) {
    throw new Error(`MCP ${generation}: ${String(error)}`, { cause: error });
  }
}

/** The first tool that does what it is for; otherwise what the first one says. */
async function callOne(client: AnyClient, tools: readonly Tool[]): Promise<string> {
  let refusal = "none was called";
  for (const [i, { name, inputSchema }] of tools.slice(0, MAX_TRIED).entries()) {
    const args = sampleOf(inputSchema as Schema) as Record<string, unknown>;
    const result = (await client.callTool({ name, arguments: args })) as {
      readonly isError?: boolean;
      readonly content?: readonly { readonly text?: string }[];
    };
    const text = (result.content?.[0]?.text ?? "").replaceAll(/\s+/g, " ").slice(0, 60);
    if (result.isError !== true) return `${name} answers "${text}"`;
    if (i === 0) refusal = `${name} answers with the error "${text}"`;
  }
  return refusal;
}

/** A value that fits, with what is required. */
function sampleOf(schema: Schema): unknown {
  const { const: fixed, default: given, enum: options } = schema;
  if (fixed !== undefined) return fixed;
  if (given !== undefined) return given;
  if (options !== undefined) return options[0];
  const [variant] = schema.anyOf ?? schema.oneOf ?? [];
  if (variant !== undefined) return sampleOf(variant);
  switch ([schema.type ?? (schema.properties === undefined ? "string" : "object")].flat()[0]) {
    case "object":
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [name, sampleOf(schema.properties?.[name] ?? {})]),
      );
    case "array":
      return Array.from({ length: schema.minItems ?? 0 }, () => sampleOf(schema.items ?? {}));
    case "number":
    case "integer":
      return schema.minimum ?? 2;
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return textOf(schema.format);
  }
}

function textOf(format: string | undefined): string {
  if (format === "email") return "asker@example.com";
  if (format === "uri" || format === "url") return "https://example.com/";
  return format === "date-time" ? new Date(0).toISOString() : "asked";
}
