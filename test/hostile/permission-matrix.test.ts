/**
 * Every operation of the management interface, as `/openapi.json` lists them, against every kind of caller: no token, a wrong one, each
 * permission alone, all of them in another account, all of them bound to this gateway or to another, and root. The rules come from the
 * description (`x-signalbox-access`, `x-signalbox-gateway`), so an operation without one fails, and so does one that does not keep it.
 *
 * Only the decision is judged: 401 and 403 are refusals, everything else means that the caller was let in. Bodies are wrong on purpose, so
 * that those who are let in change nothing.
 */
import { Agent, request } from "node:http";
import { PERMISSIONS } from "@signalbox/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { sendGeneric } from "../support/webhook-sender.ts";

const ALL: readonly string[] = PERMISSIONS;
/** What a token of one gateway may hold. */
const BINDABLE = ALL.filter(
  (permission) => permission.startsWith("gateway.") || permission === "tokens.edit",
);
const OWN = "own";
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
  /** Which gateway the path names. */
  readonly gateway?: string;
}

type Verdict = "let in" | "401" | "403";

let server: TestServer;
let operations: readonly Operation[];
let callers: readonly Caller[];
const agent = new Agent({ keepAlive: true, maxSockets: 8 });

beforeAll(async () => {
  server = await startTestServer({ environment: { WEBHOOK_SECRET: "secret-of-the-matrix" } });
  for (const id of [OWN, "other"]) await server.api("POST", "/accounts", { id });
  for (const id of ["mine", "theirs"])
    await server.api("POST", `/accounts/${OWN}/ai-gateway/gateways`, { id });
  await server.api("PUT", `/accounts/${OWN}/tags`, {
    resource_type: "worker",
    resource_id: "w",
    tags: { env: "x" },
  });
  await sendGeneric(server.url, "existing", { id: "1" }, {}, "secret-of-the-matrix");
  operations = await readOperations();
  callers = await makeCallers();
});
afterAll(async () => {
  agent.destroy();
  await server.stop();
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
  // A gateway takes the tokens that are bound to it along, so its deletion comes last.
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
  return [
    { name: "nobody", token: null, verdict: () => "401" },
    { name: "an unknown token", token: `sbx_${"x".repeat(46)}`, verdict: () => "401" },
    { name: "a token with a letter changed", token: everywhere.slice(0, -1), verdict: () => "401" },
    ...alone,
    {
      name: "every permission in another account",
      token: await server.token(ALL, { account: "other" }),
      // Without an account in the path an operation shows the caller its own.
      verdict: ({ access, path }) =>
        access === "authenticated" && !path.includes("{account_id}") ? "let in" : "403",
    },
    {
      name: "all it may hold, bound to another gateway",
      token: bound,
      gateway: "theirs",
      verdict: (operation) => (operation.binding === "narrowed" ? unlessRoot(operation) : "403"),
    },
    { name: "every permission", token: everywhere, verdict: unlessRoot },
    { name: "root", token: ROOT_TOKEN, verdict: () => "let in" },
    {
      name: "all it may hold, bound to this gateway",
      token: bound,
      gateway: "mine",
      verdict: (operation) => (operation.binding === "refused" ? "403" : unlessRoot(operation)),
    },
  ];
}

const EXISTING: Readonly<Record<string, string>> = {
  account_id: OWN,
  gateway_id: "mine",
  provider: "echo",
  agent_name: "webhook-agent",
  instance_name: "existing",
  source_name: "github",
  zone_id: "zone",
  tag_key: "env",
};

/** Whoever is let in by a deletion without a body finds nothing to delete. */
function pathFor(operation: Operation, caller: Caller): string {
  const isHarmful = operation.method === "DELETE" && caller.verdict(operation) === "let in";
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === "gateway_id" && caller.gateway !== undefined) return caller.gateway;
    const isKept =
      name === "account_id" ||
      name === "zone_id" ||
      name === "agent_name" ||
      (name === "gateway_id" && !deletesGateway(operation));
    return isHarmful && !isKept ? "absent" : (EXISTING[name] ?? "absent");
  });
  // A zone means that of the caller's account unless the query names another.
  const isElsewhere = !path.includes(`/${OWN}`) && ALL.includes(operation.access);
  return isElsewhere ? `${path}?account_id=${OWN}` : path;
}

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
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(hasBody ? { "content-type": "application/json", "content-length": 2 } : {}),
        },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("error", reject);
        response.on("end", () => {
          const status = response.statusCode ?? 0;
          const verdict = status === 401 ? "401" : status === 403 ? "403" : "let in";
          const code =
            verdict === "let in"
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

describe("every operation of the management interface", () => {
  it("states who may call it and what a token bound to a gateway reaches", () => {
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

  it("lets in exactly those its rule names, and says to the others why", async () => {
    const wrong: string[] = [];
    for (const operation of operations) {
      // One after the other: the last caller of the last operation deletes what the others need.
      for (const caller of callers) {
        const path = pathFor(operation, caller);
        const expected = caller.verdict(operation);
        const { verdict, code, status } = await send(operation.method, path, caller.token);
        const expectedCode = expected === "401" ? 10000 : expected === "403" ? 10003 : undefined;
        if (verdict !== expected || code !== expectedCode)
          wrong.push(
            `${operation.method} ${path} by ${caller.name}: ${status} with ${code}, expected ${expected}`,
          );
      }
    }
    expect(wrong).toEqual([]);
  });
});
