/** Commands against a scripted server: the request that a command sends, and the output that it prints. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "./main.ts";

interface Sent {
  readonly request: string;
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
}

let server: Server;
let url: string;
let sent: Sent[];
/** The next responses: a string is a body, a `Failure` a status with a body, anything else the result of an envelope. */
let responses: unknown[];

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      sent.push({
        request: `${request.method} ${decodeURIComponent(request.url ?? "")}`,
        ...(text === "" ? {} : { body: JSON.parse(text) as unknown }),
        headers: request.headers,
      });
      const next = responses.shift() ?? [];
      if (typeof next === "string") response.end(next);
      else if (next instanceof Failure) response.writeHead(next.status).end(next.body);
      else response.end(JSON.stringify({ success: true, errors: [], messages: [], result: next }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());
beforeEach(() => {
  sent = [];
  responses = [];
});

class Failure {
  readonly status: number;
  readonly body: string;
  constructor(status: number, body: string) {
    this.status = status;
    this.body = body;
  }
}

async function run(line: string, ...more: readonly string[]) {
  let out = "";
  let err = "";
  const code = await runCli([...line.split(" "), ...more, "--url", url, "--token", "t"], {
    out: { write: (text) => (out += text) },
    err: { write: (text) => (err += text) },
    environment: {},
    workingFolder: "/nonexistent",
  });
  return { code, out, err };
}

describe("the request of", () => {
  const A = "/accounts/default";
  it.each<[string, string, unknown?]>([
    ["account create team --name Team", "POST /accounts", { id: "team", name: "Team" }],
    ["account create", "POST /accounts", {}],
    ["account list", "GET /accounts"],
    [
      "token create ci --permission tags.read --gateway g --account team",
      "POST /accounts/team/tokens",
      { name: "ci", permissions: ["tags.read"], gateway_id: "g" },
    ],
    ["token list", `GET ${A}/tokens`],
    ["token delete t1", `DELETE ${A}/tokens/t1`],
    ["token delete t1", `DELETE ${A}/tokens/t1`],
    ["gateway list", `GET ${A}/ai-gateway/gateways?per_page=100`],
    [
      "gateway create g --authentication on --cache-ttl 60",
      `POST ${A}/ai-gateway/gateways`,
      { id: "g", authentication: true, cache_ttl: 60 },
    ],
    ["gateway set g --logs off", `PUT ${A}/ai-gateway/gateways/g`, { collect_logs: false }],
    ["gateway delete g", `DELETE ${A}/ai-gateway/gateways/g`],
    ["gateway token g --name n", `POST ${A}/ai-gateway/gateways/g/tokens`, { name: "n" }],
    [
      "logs list --model m --errors --search s --limit 5",
      `GET ${A}/ai-gateway/gateways/default/logs?search=s&per_page=5&filters=[{"key":"model","operator":"eq","value":["m"]},{"key":"success","operator":"eq","value":[false]}]`,
    ],
    ["logs list --all-gateways --text hi --limit 5", `GET ${A}/ai-gateway/logs?q=hi&limit=5&filters=[]`],
    ["logs show c --gateway g", `GET ${A}/ai-gateway/gateways/g/logs/c`],
    ["agents list", `GET ${A}/agents`],
    [
      "agents instances counter --search s --tag a --tag b",
      `GET ${A}/agents/counter/instances?search=s&tag=a&tag=b`,
    ],
    ["agents call counter x add 1 two", "POST /agents/counter/x/rpc/add", [1, "two"]],
    ["agents call counter x add --account team", "POST /agents/counter/x/rpc/add?account=team", []],
    ["agents queue counter a/b", `GET ${A}/agents/counter/instances/a/b/queue`],
    ["agents dead-letters counter x", `GET ${A}/agents/counter/instances/x/dead-letters`],
    ["agents schedules counter x", `GET ${A}/agents/counter/instances/x/schedules`],
    ["agents replay counter x --all", `POST ${A}/agents/counter/instances/x/dead-letters/replay`, {}],
    ["agents delete counter x", `DELETE ${A}/agents/counter/instances/x`],
    ["tags get worker w", `GET ${A}/tags?resource_type=worker&resource_id=w`],
    [
      "tags set worker w env=prod __proto__=x",
      `PUT ${A}/tags`,
      {
        resource_type: "worker",
        resource_id: "w",
        tags: JSON.parse('{"env":"prod","__proto__":"x"}') as object,
      },
    ],
    [
      "tags patch worker w env=a=b old-",
      `PATCH ${A}/tags`,
      { resource_type: "worker", resource_id: "w", tags: { env: "a=b", old: null } },
    ],
    ["tags delete worker w", `DELETE ${A}/tags`, { resource_type: "worker", resource_id: "w" }],
    ["tags delete worker w", `DELETE ${A}/tags`, { resource_type: "worker", resource_id: "w" }],
    [
      "tags find env !old --type worker --ignore-case",
      `GET ${A}/tags/resources?tag=env&tag=!old&type=worker&case_insensitive=true`,
    ],
    ["tags find --count", `GET ${A}/tags/resources?total=exact`],
    ["tags keys --prefix e", `GET ${A}/tags/keys?prefix=e&counts=true`],
    ["tags values env --type worker", `GET ${A}/tags/values/env?type=worker&counts=true`],
    ["webhooks sources", `GET ${A}/webhooks/sources`],
    [
      "webhooks deliveries --status failed --limit 100",
      `GET ${A}/webhooks/deliveries?status=failed&limit=100`,
    ],
    ["webhooks show d", `GET ${A}/webhooks/deliveries/d`],
    ["webhooks replay d", `POST ${A}/webhooks/deliveries/d/replay`],
  ])("%s is %s", async (line, request, body) => {
    const isList = request.startsWith("GET") && !line.startsWith("tags get");
    responses = [isList ? [] : { tags: {} }];
    await run(line);
    expect(sent.map(({ request: one }) => one)).toEqual([request]);
    expect(sent[0]?.body).toEqual(body);
    expect(sent[0]?.headers["authorization"]).toBe("Bearer t");
  });

  it("tags with --if-match has the etag as given, or quoted", async () => {
    for (const etag of ["abc", '"abc"', "*"]) {
      responses = [{ tags: {} }];
      await run("tags set worker w", "--if-match", etag);
    }
    expect(sent.map(({ headers }) => headers["if-match"])).toEqual(['"abc"', '"abc"', "*"]);
  });
});

describe("the output of", () => {
  it("a list is a table, or JSON with --json", async () => {
    const accounts = [{ id: "a", name: "Team\u001b[31m", created_at: "2026-01-01" }];
    responses = [accounts, accounts, []];
    expect(await run("account list")).toEqual({
      code: 0,
      out: "ID  NAME      CREATED\na   Team[31m  2026-01-01\n",
      err: "",
    });
    expect(JSON.parse((await run("account list --json")).out)).toEqual(accounts);
    expect((await run("account list")).out).toBe("no accounts\n");
  });

  it("agents replay is 1 if an id was not found", async () => {
    responses = [{ replayed: 1 }, { replayed: 2 }];
    expect(await run("agents replay c x id1 id2")).toEqual({ code: 1, out: "replayed 1\n", err: "" });
    expect((await run("agents replay c x id1 id2")).code).toBe(0);
  });

  it("logs show --response is the stored body, with a final line end", async () => {
    responses = ['{"choices":[]}'];
    expect((await run("logs show c --response")).out).toBe('{"choices":[]}\n');
  });

  it("webhooks tail has as many lines as --limit says, over several pages", async () => {
    const page = Array.from({ length: 100 }, (_, i) => ({
      id: `d${i}`,
      received_at: "T",
      source: "s",
      status: "accepted",
      error: null,
    }));
    responses = [[], page, page];
    const { code, out } = await run("webhooks tail --limit 150");
    expect([code, out.trimEnd().split("\n").length]).toEqual([0, 150]);
  });

  it("agents tail has one line per event", async () => {
    const event = { type: "turn", agent: "c", name: "x", timestamp: "T", detail: { kind: "rpc", ms: 3 } };
    const stream = `: listening\n\nevent: turn\ndata: ${JSON.stringify(event)}\n\nevent: missed\ndata: 7\n\n`;
    responses = [stream, stream];
    expect(await run("agents tail c x")).toEqual({
      code: 0,
      out: "T turn       kind=rpc ms=3\n",
      err: "missed 7 events\n",
    });
    expect(sent[0]?.headers["accept"]).toBe("text/event-stream");
    expect((await run("agents tail c x --json")).out).toBe(`${JSON.stringify(event)}\n`);
  });
});

describe("a failure", () => {
  it("of the service is one line with its code, and exit code 1", async () => {
    const errors = [{ code: 7003, message: "Token not\u0007 found" }];
    responses = [new Failure(404, JSON.stringify({ success: false, errors, result: null }))];
    expect(await run("token delete t")).toEqual({
      code: 1,
      out: "",
      err: "signalbox: Token not found (code 7003)\n",
    });
  });

  it("of another server is one line, and exit code 1", async () => {
    responses = [new Failure(502, "<html>")];
    expect(await run("token list")).toEqual({
      code: 1,
      out: "",
      err: "signalbox: GET /accounts/default/tokens: status 502, and the body is not a Signalbox response\n",
    });
  });

  it.each([
    ["token create ci", "give at least one --permission, e.g. --permission tags.read"],
    ["gateway set g", "give at least one setting, e.g. --authentication on"],
    ["gateway set g --authentication maybe", '--authentication: expected on or off, found "maybe"'],
    ["gateway set g --max-attempts many", '--max-attempts: expected a whole number, found "many"'],
    ["agents replay c x", "give ids of dead letters, or --all"],
    ["agents show c ..", '".." is not a valid name'],
    ["logs show c --request --response", "give --request or --response, not both"],
    ["logs list --all-gateways --gateway g", "give --gateway or --all-gateways, not both"],
    ["logs list --limit 0", "--limit: expected a whole number above 0, found 0"],
    ["logs list --limit 1001", "--limit: at most 1000"],
    ["webhooks deliveries --limit 101", "--limit: at most 100"],
    ["webhooks deliveries --limit x", '--limit: expected a number of at least 1, found "x"'],
    ["tags set worker w env", 'expected key=value, found "env"'],
    ["tags patch worker w env", 'expected key=value or key-, found "env"'],
  ])("of the command line, %j, is one line, and exit code 2", async (line, message) => {
    expect(await run(line)).toEqual({ code: 2, out: "", err: `signalbox: ${message}\n` });
    expect(sent).toEqual([]);
  });
});
