/**
 * What a program of the worker mode can use, member by member: the source of docs/reference/worker.md. A test compares the table with what a program
 * in a running server finds, in both directions, so that a member that disappears fails, and one that is added is documented.
 */
import { join } from "node:path";
import { MISSING_KINDS } from "../../packages/signalbox/src/worker/settings/missing-bindings.ts";

export const WORKER_PAGE_PATH = join(import.meta.dirname, "../../docs/reference/worker.md");

interface SurfaceSection {
  readonly name: string;
  readonly about: string;
  readonly members: readonly string[];
  /** Members that exist and throw, because this server cannot do what they ask. */
  readonly throwing?: readonly string[];
  /** Members that programs find and are not meant for them. */
  readonly internal?: readonly string[];
}

const BOOKMARKS = [
  "getBookmarkForTime",
  "getCurrentBookmark",
  "onNextSessionRestore",
  "onNextSessionRestoreBookmark",
  "snapshot",
  "waitForBookmark",
];
const KEYS = ["delete", "deleteAlarm", "get", "getAlarm", "list", "put", "setAlarm"];

export const WORKER_SURFACE: readonly SurfaceSection[] = [
  {
    name: "cloudflare:workers",
    about: "The base classes, and the bindings for code without `env`.",
    members: [
      "DurableObject",
      "RpcPromise",
      "RpcProperty",
      "RpcStub",
      "RpcTarget",
      "ServiceStub",
      "WorkerEntrypoint",
      "WorkflowEntrypoint",
      "cache",
      "env",
      "exports",
      "restore",
      "tracing",
      "waitUntil",
      "withEnv",
      "withEnvAndExports",
      "withExports",
    ],
    throwing: ["abortIsolate"],
  },
  {
    name: "cloudflare:node",
    about:
      "Servers of `node:http` as handlers. A server that does not listen gets a port of the loopback interface; one that the program lets listen does so for real.",
    members: ["handleAsNodeRequest", "httpServerHandler"],
  },
  { name: "cloudflare:email", about: "Messages to send.", members: ["EmailMessage"] },
  { name: "cloudflare:workflows", about: "Errors of workflows.", members: ["NonRetryableError"] },
  { name: "cloudflare:sockets", about: "Use `node:net` and `node:tls`.", members: [], throwing: ["connect"] },
  {
    name: "globals",
    about:
      "Beside those of Node. `Response` accepts status 101 with a `webSocket`; `crypto.subtle.timingSafeEqual` and `crypto.DigestStream` exist; `caches` never has an entry.",
    members: [
      "Cloudflare",
      "EventSource",
      "FixedLengthStream",
      "HTMLRewriter",
      "IdentityTransformStream",
      "WebSocketPair",
      "WebSocketRequestResponsePair",
      "addEventListener",
      "caches",
      "reportError",
      "scheduler",
      "self",
    ],
  },
  {
    name: "ctx of handlers",
    about: "`fetch`, `scheduled` and `email` of the default export, and entrypoints.",
    members: ["exports", "passThroughOnException", "props", "waitUntil"],
    internal: ["passesThrough"],
  },
  {
    name: "namespace",
    about: "`env.<Binding>`, `env.<Class>` and `ctx.exports.<Class>` of an object class.",
    members: ["get", "getByName", "idFromName", "idFromString", "jurisdiction", "newUniqueId"],
  },
  {
    name: "ctx",
    about: "The first argument of an object's constructor.",
    members: [
      "abort",
      "acceptWebSocket",
      "blockConcurrencyWhile",
      "exports",
      "facets",
      "getHibernatableWebSocketEventTimeout",
      "getTags",
      "getWebSocketAutoResponse",
      "getWebSocketAutoResponseTimestamp",
      "getWebSockets",
      "id",
      "props",
      "onNextSessionRestore",
      "setHibernatableWebSocketEventTimeout",
      "setWebSocketAutoResponse",
      "storage",
      "waitUntil",
    ],
  },
  {
    name: "ctx.id",
    about: "An id; `name` is undefined for ids without one.",
    members: ["equals", "name", "toString"],
  },
  {
    name: "ctx.storage",
    about: "One SQLite database per object, durable before anything leaves the object.",
    members: [...KEYS, ...BOOKMARKS, "deleteAll", "kv", "sql", "sync", "transaction", "transactionSync"],
    internal: ["begin", "isEmptied", "parts"],
  },
  {
    name: "ctx.storage.transaction",
    about: "The argument of the function.",
    members: [...KEYS, "kv", "rollback"],
    internal: ["begin", "finish", "parts"],
  },
  {
    name: "ctx.storage.sql",
    about: "SQL of run-time text.",
    members: ["Cursor", "databaseSize", "exec"],
    internal: ["execWithin"],
  },
  {
    name: "ctx.storage.sql.exec()",
    about: "A cursor; it can be iterated.",
    members: ["columnNames", "next", "one", "raw", "rowsRead", "rowsWritten", "toArray"],
  },
  {
    name: "ctx.storage.kv",
    about: "Keys and values without promises.",
    members: ["delete", "get", "list", "put"],
    internal: ["deleteAll", "find", "measure", "putAll"],
  },
  {
    name: "ctx.facets",
    about: "Objects inside an object, each with a database of its own.",
    members: ["abort", "delete", "get"],
    internal: ["abortAll"],
  },
  {
    name: "WebSocket",
    about: "An end of a pair; it is an `EventTarget`.",
    members: [
      "accept",
      "addEventListener",
      "binaryType",
      "close",
      "deserializeAttachment",
      "extensions",
      "onclose",
      "onerror",
      "onmessage",
      "onopen",
      "protocol",
      "readyState",
      "removeEventListener",
      "send",
      "serializeAttachment",
      "url",
    ],
    internal: ["belongsTo"],
  },
  { name: "WebSocketPair", about: "Two connected WebSockets.", members: ["0", "1"] },
  {
    name: "workflow binding",
    about: "`env.<WORKFLOW>` and `ctx.exports.<Class>`.",
    members: ["create", "createBatch", "deleteBatch", "get"],
    internal: ["createScheduled"],
  },
  {
    name: "workflow instance",
    about: "What `create` and `get` return.",
    members: ["delete", "id", "pause", "restart", "resume", "sendEvent", "status", "subscribe", "terminate"],
  },
  {
    name: "workflow event",
    about: "The first argument of `run`.",
    members: ["instanceId", "payload", "timestamp", "workflowName"],
  },
  {
    name: "step",
    about: "The second argument of `run`.",
    members: ["do", "sleep", "sleepUntil", "waitForEvent"],
    internal: ["rollBack"],
  },
  {
    name: "env.AI",
    about: "Models through the gateway of this server.",
    members: ["aiGatewayLogId", "fetch", "gateway", "models", "run"],
    throwing: ["autorag", "toMarkdown"],
  },
  {
    name: "env.AI.gateway()",
    about: "One gateway.",
    members: ["getLog", "getUrl", "patchLog", "run"],
  },
  {
    name: "worker loader",
    about: "`env.<LOADER>` of `worker_loaders`: programs that are loaded at run time, each in a process.",
    members: ["get", "load"],
  },
  {
    name: "loaded worker",
    about: "What `get` and `load` return.",
    members: ["getDurableObjectClass", "getEntrypoint"],
  },
  {
    name: "env.ASSETS",
    about:
      "Static files. Not part of the site, and never found: what `.assetsignore` of the folder lists (read at start), names that begin with a dot other than " +
      "`.well-known`, and `_worker.js`, `_headers` and `_redirects` of the folder itself. `run_worker_first` is compared with the decoded path.",
    members: ["fetch"],
  },
];

/** Every name that a program finds in a section. */
export function namesOf({ members, throwing = [], internal = [] }: SurfaceSection): string[] {
  return [...members, ...throwing, ...internal].toSorted();
}

const INTRODUCTION = `# The surface of the worker mode

This page is generated from \`scripts/support/worker-surface.ts\` by \`npm run docs\`. A test compares it with what a program in a running server finds.

How to use it: [Run your Cloudflare agents yourself](../guides/run-cloudflare-agents.md).
`;

export function workerPage(): string {
  const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(", ");
  const sections = WORKER_SURFACE.map(({ name, about, members, throwing = [] }) =>
    [
      `## \`${name}\``,
      about,
      ...(members.length === 0 ? [] : [`${code(members.toSorted())}.`]),
      ...(throwing.length === 0 ? [] : [`Not available, throws when used: ${code(throwing)}.`]),
    ].join("\n\n"),
  );
  const missing = `## Bindings that are not available

A binding of one of these kinds in the wrangler file throws \`binding NAME (kind) is not available on Signalbox\` when it is used, not before:

${MISSING_KINDS.map((kind) => `- ${kind}`).join("\n")}
`;
  return [INTRODUCTION, ...sections.map((section) => `${section}\n`), missing].join("\n");
}
