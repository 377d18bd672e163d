/**
 * Calls of agent methods over WebSockets and HTTP: names of prototypes and runtime methods, deep and large arguments,
 * wrong types, invalid frames. Every call is answered in the shape of the protocol; no prototype is polluted and
 * nothing breaks.
 */
import { join } from "node:path";
import { RawClient } from "../../support/agents.ts";
import { pick, type Random } from "../../support/ledger/random.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../../support/test-server.ts";
import { checkLog } from "../support/check-log.ts";
import { chance, mutate, randomBytes, repeat, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

type Input =
  | {
      readonly way: "socket";
      readonly instance: string;
      readonly frames: readonly { readonly bytes: string; readonly isBinary: boolean }[];
    }
  | { readonly way: "http"; readonly method: string; readonly path: string; readonly body: string };

const FUZZED_AGENT = join(import.meta.dirname, "../../fixtures/fuzzed-agent.ts");
const METHODS = [
  "echo",
  "keep",
  "notes",
  "hidden",
  "__proto__",
  "constructor",
  "toString",
  "valueOf",
  "hasOwnProperty",
  "prototype",
  "setState",
  "sql",
  "onStart",
  "onRequest",
  "destroy",
  "queue",
  "schedule",
  "broadcast",
  "fetch",
  "state",
  "env",
  "#private",
  "",
  " ",
  "\0",
  "a.b",
  "constructor.constructor",
  "then",
  "x".repeat(2000),
  "__defineGetter__",
  "ECHO",
  "é",
];
const POLLUTION = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';

export const agentRpcTarget = defineTarget<Input>({
  name: "agent-rpc",
  summary: "calls of agents' methods over WebSockets and HTTP",
  shortRun: 800,
  width: 4,
  generate(random) {
    const instance = chance(random, 0.9)
      ? `fuzzed-${upTo(random, 4)}`
      : pick(random, ["__proto__", "constructor", "%00", "a%2fb", "é", "x".repeat(300), "%ff"]);
    if (chance(random, 0.6))
      return {
        way: "socket",
        instance: `fuzzed-${upTo(random, 4)}`,
        frames: repeat(random, 4, () => frame(random)),
      };
    const method = chance(random, 0.8) ? "POST" : pick(random, ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]);
    const path = `/agents/${chance(random, 0.95) ? "fuzzed-agent" : pick(random, ["__proto__", "constructor", "Fuzzed-Agent", "%00"])}/${instance}/rpc/${encodeURIComponent(pick(random, METHODS))}`;
    return {
      way: "http",
      method,
      path,
      body: chance(random, 0.7) ? JSON.stringify(repeat(random, 3, () => value(random, 3))) : oddText(random),
    };
  },
  open,
});

function frame(random: Random): { bytes: string; isBinary: boolean } {
  const id = chance(random, 0.9)
    ? `id-${upTo(random, 1e9)}`
    : pick(random, ["", "__proto__", "x".repeat(500)]);
  const call = JSON.stringify({
    type: "rpc",
    id,
    method: pick(random, METHODS),
    args: repeat(random, 3, () => value(random, 4)),
  });
  const state = JSON.stringify({ type: "cf_agent_state", state: value(random, 4) });
  const text = pick(random, [call, call, call, state, oddText(random)]);
  return { bytes: chance(random, 0.2) ? mutate(random, text) : text, isBinary: chance(random, 0.05) };
}

function value(random: Random, depth: number): unknown {
  const leaf = pick(random, [
    null,
    true,
    0,
    -1,
    1e308,
    2 ** 53,
    "",
    "text",
    "\ud800",
    "\0",
    "x".repeat(1000),
    "é",
    '"',
  ] as const);
  if (depth === 0 || chance(random, 0.5)) return leaf;
  if (chance(random, 0.5)) return repeat(random, 4, () => value(random, depth - 1));
  // Parsed from text, so that `__proto__` is an own member.
  return JSON.parse(
    `{${repeat(random, 3, () => `${JSON.stringify(pick(random, ["a", "__proto__", "constructor", "toJSON", "then", "length"]))}:${JSON.stringify(value(random, depth - 1))}`).join(",")}}`,
  );
}

function oddText(random: Random): string {
  return pick(random, [
    "",
    "{",
    "null",
    "[]",
    "0",
    "{}",
    POLLUTION,
    `[${POLLUTION}]`,
    `{"type":"rpc","id":"p","method":"keep","args":[${POLLUTION}]}`,
    `{"type":"cf_agent_state","state":${POLLUTION}}`,
    '{"type":"rpc","id":1,"method":"echo","args":[]}',
    '{"type":"rpc","id":"a","method":"echo","args":{"length":1e9}}',
    '{"type":"rpc","id":"a","method":["echo"],"args":[]}',
    '{"type":["rpc"]}',
    '{"type":"cf_agent_state"}',
    '{"type":"cf_agent_identity","name":"x"}',
    `[${"[".repeat(5000)}${"]".repeat(5000)}]`,
    `{"type":"rpc","id":"deep","method":"echo","args":[${"[".repeat(4000)}${"]".repeat(4000)}]}`,
    `["${"x".repeat(100_000)}"]`,
    randomBytes(random, 200),
  ]);
}

async function open(): Promise<Arena<Input>> {
  const server = await startTestServer({ file: { agents: { modules: [FUZZED_AGENT] } } });
  return {
    attempt: (input) => (input.way === "http" ? attemptHttp(server, input) : attemptSocket(server, input)),
    // An invalid state makes the agent fail, which is logged.
    check: async () => checkLog(server.logs, ["StateError"]),
    close: () => server.stop(),
  };
}

async function attemptHttp(
  server: TestServer,
  { method, path, body }: Extract<Input, { way: "http" }>,
): Promise<void> {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    ...(method === "GET" ? {} : { body: Buffer.from(body, "utf8") }),
  });
  const text = await response.text();
  // 3007: the agent's own code failed, for example with an invalid state.
  if (response.status >= 500 && !text.includes('"code":3007,'))
    throw new Error(`${response.status} ${text.slice(0, 500)}`);
  const answer = JSON.parse(text) as { success: unknown; errors: { code: unknown; message: unknown }[] };
  const [error] = answer.errors;
  const isRight = response.ok
    ? answer.success === true && error === undefined
    : answer.success === false && typeof error?.code === "number" && typeof error.message === "string";
  if (!isRight) throw new Error(`${response.status} in another shape: ${text.slice(0, 500)}`);
}

async function attemptSocket(
  server: TestServer,
  { instance, frames }: Extract<Input, { way: "socket" }>,
): Promise<void> {
  const client = await new RawClient(`${server.url}/agents/fuzzed-agent/${instance}`).opened();
  try {
    for (const { bytes, isBinary } of frames)
      client.socket.send(isBinary ? Buffer.from(bytes, "latin1") : bytes.toWellFormed());
    const expected = frames.flatMap(({ bytes, isBinary }) =>
      isBinary ? [] : calledId(bytes.toWellFormed()),
    );
    // Turns run in order, so everything before this call has been answered.
    const { result } = (await client.call("echo", "end")) as { result: unknown };
    if (JSON.stringify(result) !== '["end"]')
      throw new Error(`the call after was answered ${JSON.stringify(result)}`);
    for (const frame of client.received) requireShape(frame);
    for (const id of expected) {
      if (!client.received.some((frame: { id?: unknown }) => frame.id === id))
        throw new Error(`the call ${JSON.stringify(id)} was not answered`);
    }
  } finally {
    client.close();
  }
}

/** The id of a valid call. */
function calledId(text: string): string[] {
  try {
    const { type, id, method, args } = JSON.parse(text) as Record<string, unknown>;
    return type === "rpc" && typeof id === "string" && typeof method === "string" && Array.isArray(args)
      ? [id]
      : [];
  } catch {
    return [];
  }
}

function requireShape(frame: Record<string, unknown>): void {
  const { type } = frame;
  const isRight =
    type === "rpc"
      ? typeof frame["id"] === "string" &&
        (frame["success"] === true ? frame["done"] === true : typeof frame["error"] === "string")
      : type === "cf_agent_state"
        ? "state" in frame
        : type === "cf_agent_state_error"
          ? typeof frame["error"] === "string"
          : type === "cf_agent_identity";
  if (!isRight) throw new Error(`a frame in another shape: ${JSON.stringify(frame).slice(0, 500)}`);
}
