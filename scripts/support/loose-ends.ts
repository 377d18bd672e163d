/**
 * Finds code that could end the process or hide a failure (docs/decisions/0090), and low-level code outside the engines (0101):
 *
 * 1. Promises that a timer does not handle: `setInterval(() => void flush())`. Their rejection is unhandled. For a single timer, a comment may
 *    say why the promise cannot reject; repeated work uses `repeat()`.
 * 2. Failures that are ignored without a reason: an empty `catch`, or `.catch(() => undefined)`, without a comment.
 * 3. Sockets, servers, streams, child processes, workers and WebSockets in a file without an `error` listener: an `error` event without a
 *    listener is an uncaught exception.
 * 4. `writeSync` of Node outside `engines/durable-file`: on a nearly full disk it writes a part and throws nothing.
 * 5. Raw memory (`Buffer.alloc`, `SharedArrayBuffer`) and Node's names with an underscore, outside `engines/` and `database/`.
 *
 * The check reads syntax, not types: it does not find emitters that are created under other names, or listeners in another file.
 */
import { parseSync } from "vite";

export interface LooseEnd {
  readonly line: number;
  readonly problem: string;
}

type Node = { readonly type: string; readonly start: number; readonly end: number } & Record<string, unknown>;

const TIMERS: ReadonlySet<string> = new Set(["setInterval", "setTimeout", "setImmediate"]);
/** Functions that create an object with an `error` event. */
const MAKERS: ReadonlySet<string> = new Set([
  "connect",
  "createConnection",
  "createServer",
  "spawn",
  "fork",
  "createReadStream",
  "createWriteStream",
  "handleUpgrade",
]);
const CLASSES: ReadonlySet<string> = new Set([
  "WebSocket",
  "WebSocketServer",
  "Worker",
  "Socket",
  "Pool",
  "Client",
]);
/** Names count only if they are imported from these modules; `connect` is also a method of many other objects. */
const MODULES = /^(node:)?(net|tls|http|https|fs|child_process|worker_threads)$|^ws$|^pg$|core\/node-http/;
const LISTENING = /\.(on|once|addListener)\(\s*["'`]error["'`]/;
/** These turn an `error` event into a rejection. */
const AWAITED = /\bonce\(\s*\w+,|\bpipeline\(/;

/** Where low-level code belongs. Agents may not use these either, but their classes are not part of the service. */
const LOW_LEVEL = /packages\/signalbox\/src\/(engines|database)\//;
const RAW_MEMORY = /^alloc(Unsafe(Slow)?)?$/;

export function findLooseEnds(path: string, text: string): LooseEnd[] {
  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const found: LooseEnd[] = [];
  const report = (node: Node, problem: string) =>
    found.push({ line: text.slice(0, node.start).split("\n").length, problem });
  const hasComment = (node: Node, from = node.start) => {
    // On the line before the node, or inside it.
    const lineStart = text.lastIndexOf("\n", from - 1);
    const above = text.lastIndexOf("\n", lineStart - 1);
    return comments.some(({ start, end }) => end > above && start < node.end);
  };
  if (!path.includes("engines/durable-file/"))
    for (const specifier of importsFrom(program as unknown as Node, /^(node:)?fs$/))
      if ((specifier["imported"] as { name?: string } | undefined)?.name === "writeSync")
        report(specifier, "writeSync may write a part only; use writeWhole()");
  const makers = importedMakers(program as unknown as Node);
  const hasListener = LISTENING.test(text) || AWAITED.test(text);

  walk(program as unknown as Node, (node) => {
    if (isCall(node)) {
      const name = nameOf(node["callee"] as Node);
      const [first] = node["arguments"] as Node[];
      const isExplained = name !== "setInterval" && hasComment(node);
      if (TIMERS.has(name) && first !== undefined && ignoresPromise(first) && !isExplained)
        report(node, `${name} ignores a promise; use repeat(), or handle its rejection`);
      if (name === "catch" && first !== undefined && isEmptyFunction(first) && !hasComment(node, first.start))
        report(first, "a failure is ignored without a comment that says why");
      if (makers.has(name) && !hasListener)
        report(node, `${name} creates an emitter without a listener for "error"`);
    }
    if (node.type === "NewExpression") {
      const name = nameOf(node["callee"] as Node);
      if (makers.has(name) && !hasListener) report(node, `new ${name} has no listener for "error"`);
    }
    if (!LOW_LEVEL.test(path)) {
      const name = lowLevelName(node);
      if (name !== null) report(node, `${name} belongs below engines/ or database/`);
    }
    if (node.type === "CatchClause") {
      const body = node["body"] as Node & { body: readonly Node[] };
      if (body.body.length === 0 && !comments.some(({ start, end }) => start > body.start && end < body.end))
        report(node, "an empty catch without a comment that says why");
    }
  });
  return found;
}

/** What a file imports from modules, except for types. */
function importsFrom(program: Node, modules: RegExp): Node[] {
  return (program["body"] as Node[])
    .filter(
      (statement) =>
        statement.type === "ImportDeclaration" &&
        statement["importKind"] !== "type" &&
        modules.test((statement["source"] as { value: string }).value),
    )
    .flatMap((statement) => statement["specifiers"] as Node[])
    .filter((specifier) => specifier["importKind"] !== "type");
}

/** Local names of functions and classes that create emitters, including methods of imported namespaces. */
function importedMakers(program: Node): Set<string> {
  const names = new Set<string>();
  for (const specifier of importsFrom(program, MODULES)) {
    const local = (specifier["local"] as { name: string }).name;
    if (specifier.type !== "ImportSpecifier") for (const name of [...MAKERS, ...CLASSES]) names.add(name);
    else {
      const imported = (specifier["imported"] as { name: string }).name;
      if (MAKERS.has(imported) || CLASSES.has(imported)) names.add(local);
      // Its method creates the socket.
      if (imported === "WebSocketServer") names.add("handleUpgrade");
    }
  }
  return names;
}

/** The name of raw memory, or of a private field of Node, that the node uses; null for all others. */
function lowLevelName(node: Node): string | null {
  if (node.type === "Identifier" && node["name"] === "SharedArrayBuffer") return "SharedArrayBuffer";
  if (node.type !== "MemberExpression" || node["computed"] === true) return null;
  const property = (node["property"] as { name?: string }).name ?? "";
  const object = (node["object"] as { name?: string }).name ?? "";
  if (object === "Buffer" && RAW_MEMORY.test(property)) return `Buffer.${property}`;
  return /^_[a-z]/.test(property) ? property : null;
}

/** `() => void f()`, `async () => …`, and `() => f().then(…)` without a catch. */
function ignoresPromise(callback: Node): boolean {
  if (callback.type !== "ArrowFunctionExpression" && callback.type !== "FunctionExpression") return false;
  if (callback["async"] === true) return true;
  const body = callback["body"] as Node;
  const statements =
    body.type === "BlockStatement"
      ? (body["body"] as Node[]).map((statement) =>
          statement.type === "ExpressionStatement" ? (statement["expression"] as Node) : statement,
        )
      : [body];
  return statements.some(
    (expression) =>
      expression.type === "UnaryExpression" &&
      expression["operator"] === "void" &&
      isCall(expression["argument"] as Node) &&
      nameOf((expression["argument"] as Node)["callee"] as Node) !== "catch",
  );
}

function isEmptyFunction(node: Node): boolean {
  if (node.type !== "ArrowFunctionExpression" && node.type !== "FunctionExpression") return false;
  const body = node["body"] as Node;
  if (body.type === "BlockStatement") return (body["body"] as Node[]).length === 0;
  return body.type === "Identifier" && body["name"] === "undefined";
}

function isCall(node: Node): boolean {
  return node.type === "CallExpression";
}

/** The last name of `a.b.c` and of `c`. */
function nameOf(callee: Node): string {
  if (callee.type === "Identifier") return String(callee["name"]);
  if (callee.type === "MemberExpression") return (callee["property"] as { name?: string }).name ?? "";
  return "";
}

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (typeof child === "object" && child !== null && "type" in child) walk(child as Node, visit);
    }
  }
}
