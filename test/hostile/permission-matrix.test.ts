/**
 * Every operation in `/openapi.json` with every kind of caller: no token, a wrong one, each permission alone, all
 * permissions in another account, all permissions bound to this gateway or to another, and root. The rules are read
 * from the description (`x-signalbox-access`, `x-signalbox-gateway`), so an operation without a rule fails, and so
 * does one that breaks it.
 *
 * Only the decision is checked: 401 and 403 are refusals, an internal error fails, any other status means that the
 * caller was admitted. All named resources exist, also at the end: bodies are invalid on purpose, and admitted
 * callers delete absent resources.
 */
import { Agent, request } from "node:http";
import { PERMISSIONS } from "@signalbox/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN, type TestServer } from "../support/test-server.ts";
import { type FullAccount, createFullAccount, OWN } from "./support/full-account.ts";

const ALL: readonly string[] = PERMISSIONS;
/** Permissions that a token bound to a gateway may have. */
const BINDABLE = ALL.filter(
  (permission) => permission.startsWith("gateway.") || permission === "tokens.edit",
);
const BINDINGS = ["{gateway_id}", "narrowed", "refused"];

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly access: string;
  readonly binding: string;
}

interface Caller {
  readonly name: string;
  readonly token: string | null;
  readonly verdict: (operation: Operation) => Verdict;
  /** The gateway that the path names. */
  readonly gateway?: string;
}

type Verdict = "let in" | "401" | "403" | "failed";

let account: FullAccount;
let server: TestServer;
let operations: readonly Operation[];
let callers: readonly Caller[];
const agent = new Agent({ keepAlive: true, maxSockets: 2 });

beforeAll(async () => {
  account = await createFullAccount();
  ({ server } = account);
  operations = await readOperations();
  callers = await makeCallers();
});
afterAll(async () => {
  agent.destroy();
  await account.close();
});

async function readOperations(): Promise<Operation[]> {
  const { body } = await server.api("GET", "/openapi.json");
  const paths = (body as { paths: Record<string, Record<string, Record<string, unknown>>> }).paths;
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      access: String(operation["x-signalbox-access"]),
      binding: String(operation["x-signalbox-gateway"]),
    })),
  );
  // Deleting a gateway revokes the tokens bound to it, so it comes last.
  return found.sort((a, b) => Number(deletesGateway(a)) - Number(deletesGateway(b)));
}

function deletesGateway({ method, path }: Operation): boolean {
  return method === "DELETE" && path.endsWith("/gateways/{gateway_id}");
}

async function makeCallers(): Promise<Caller[]> {
  const everywhere = await server.token(ALL, { account: OWN });
  const alone = await Promise.all(
    ALL.map(async (permission): Promise<Caller> => ({
      name: `${permission} alone`,
      token: await server.token([permission], { account: OWN }),
      verdict: ({ access }) => (access === "authenticated" || access === permission ? "let in" : "403"),
    })),
  );
  const bound = await server.token(BINDABLE, { account: OWN, gateway_id: "mine" });
  const unlessRoot = ({ access }: Operation): Verdict => (access === "root" ? "403" : "let in");
  // The existing token is bound to no gateway, so bound tokens cannot see it.
  const narrowed = (operation: Operation): Verdict =>
    operation.method === "GET" && /\/tokens\/\{token_id\}(?:\/usage)?$/.test(operation.path)
      ? "403"
      : unlessRoot(operation);
  return [
    { name: "no token", token: null, verdict: () => "401" },
    { name: "an unknown token", token: `sbx_${"x".repeat(46)}`, verdict: () => "401" },
    { name: "a token with a letter changed", token: everywhere.slice(0, -1), verdict: () => "401" },
    ...alone,
    {
      name: "every permission in another account",
      token: await server.token(ALL, { account: "other" }),
      // Without an account in the path an operation uses the caller's account.
      verdict: ({ access, path }) =>
        access === "authenticated" && !path.includes("{account_id}") ? "let in" : "403",
    },
    {
      name: "all it may hold, bound to another gateway",
      token: bound,
      gateway: "theirs",
      verdict: (operation) => (operation.binding === "narrowed" ? narrowed(operation) : "403"),
    },
    { name: "every permission", token: everywhere, verdict: unlessRoot },
    { name: "root", token: ROOT_TOKEN, verdict: () => "let in" },
    {
      name: "all it may hold, bound to this gateway",
      token: bound,
      gateway: "mine",
      verdict: (operation) => (operation.binding === "refused" ? "403" : narrowed(operation)),
    },
  ];
}

/** Operations without a body, which an admitted caller would execute. */
function isHarmful({ method, path }: Operation): boolean {
  return (
    method === "DELETE" ||
    path.endsWith("/late-deliveries/{delivery}/replay") ||
    path.endsWith("/events/{event_id}/cancel") ||
    path.endsWith("/replays/{replay_id}/cancel")
  );
}

/** Kept even from admitted callers, because other paths below it are tested. */
const CONTAINERS: ReadonlySet<string> = new Set(["account_id", "zone_id", "agent_name", "gateway_id"]);

function pathFor(operation: Operation, caller: Caller): string {
  const isSpared = isHarmful(operation) && caller.verdict(operation) === "let in";
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === "gateway_id" && caller.gateway !== undefined) return caller.gateway;
    if (isSpared && (!CONTAINERS.has(name) || (name === "gateway_id" && deletesGateway(operation))))
      return "absent";
    const isLate = name === "delivery" && operation.path.includes("/late-deliveries/");
    const isRouted = name === "source_name" && operation.path.includes("/routes");
    const value = account.existing[isLate ? "late-deliveries" : isRouted ? "routes-source" : name];
    if (value === undefined || value === "") throw new Error(`nothing is there for ${operation.path}`);
    return value;
  });
  // A zone belongs to the caller's account unless the query names another.
  const isElsewhere = !path.includes(`/${OWN}`) && ALL.includes(operation.access);
  return isElsewhere ? `${path}?account_id=${OWN}` : path;
}

/** Wrong tokens are limited per address, so they come from several. */
let calls = 0;
const nextAddress = () => `127.0.0.${(calls++ % 64) + 1}`;

function send(
  method: string,
  path: string,
  token: string | null,
): Promise<{ verdict: Verdict; code: number | undefined; status: number }> {
  const hasBody = method === "POST" || method === "PUT" || method === "PATCH";
  return new Promise((resolve, reject) => {
    const call = request(
      server.url + path,
      {
        method,
        agent,
        localAddress: nextAddress(),
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(hasBody ? { "content-type": "application/json", "content-length": 2 } : {}),
        },
      },
      (response) => {
        if (response.headers["content-type"]?.startsWith("text/event-stream") === true) {
          // Never ends.
          response.destroy();
          resolve({ verdict: "let in", code: undefined, status: 200 });
          return;
        }
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("error", reject);
        response.on("end", () => {
          const status = response.statusCode ?? 0;
          const verdict =
            status === 401 ? "401" : status === 403 ? "403" : status >= 500 ? "failed" : "let in";
          const code =
            verdict === "let in" || verdict === "failed"
              ? undefined
              : (JSON.parse(text) as { errors: { code: number }[] }).errors[0]?.code;
          resolve({ verdict, code, status });
        });
      },
    );
    call.on("error", reject);
    call.end(hasBody ? "[]" : undefined);
  });
}

describe("every operation of the management API", () => {
  it("the operation states who may call it and what a token bound to a gateway reaches", () => {
    expect(operations.length).toBeGreaterThan(60);
    const known = ["root", "authenticated", ...ALL];
    expect(operations.filter(({ access }) => !known.includes(access))).toEqual([]);
    expect(operations.filter(({ binding }) => !BINDINGS.includes(binding))).toEqual([]);
    expect(
      operations.filter(
        ({ path, binding }) => path.includes("{gateway_id}") !== (binding === "{gateway_id}"),
      ),
    ).toEqual([]);
  });

  it("the resource in the path exists", async () => {
    expect(await absent(operations)).toEqual([]);
  });

  it("exactly the callers of the rule are admitted, and the others get a reason", async () => {
    const wrong: string[] = [];
    const check = async (operation: Operation, caller: Caller) => {
      const path = pathFor(operation, caller);
      const expected = caller.verdict(operation);
      const { verdict, code, status } = await send(operation.method, path, caller.token);
      const expectedCode = expected === "401" ? 10000 : expected === "403" ? 10003 : undefined;
      if (verdict !== expected || code !== expectedCode)
        wrong.push(
          `${operation.method} ${path} by ${caller.name}: ${status} with ${code}, expected ${expected}`,
        );
    };
    // The sockets of the agent bound how many run at a time. Refused writes that run at the same time are synced to disk together.
    const kept = operations.filter((operation) => !deletesGateway(operation));
    await Promise.all(kept.flatMap((operation) => callers.map((caller) => check(operation, caller))));
    // In sequence: the last caller deletes what the others need.
    for (const operation of operations.filter(deletesGateway)) {
      for (const caller of callers) await check(operation, caller);
    }
    expect(wrong).toEqual([]);
    // About three thousand requests, of which a third are written to the audit log.
  });

  it("the named resources still exist, except for the gateway that was deleted last", async () => {
    expect(await absent(operations.filter(({ path }) => !path.includes("{gateway_id}")))).toEqual([]);
  });
});

/** Paths that cannot be read. */
async function absent(those: readonly Operation[]): Promise<string[]> {
  const found: string[] = [];
  for (const operation of those.filter(({ method }) => method === "GET")) {
    const path = pathFor(operation, { name: "root", token: ROOT_TOKEN, verdict: () => "let in" });
    const { status } = await send("GET", path, ROOT_TOKEN);
    // Some need a query; a resource with its own path must be found.
    if (status !== 200 && status !== 400) found.push(`${path}: ${status}`);
  }
  return found;
}
