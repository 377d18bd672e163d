/**
 * Random callers against a provider that keeps its own bill: calls and streams, with and without usage, answered, refused, cut, left in the middle
 * or before the answer, with fallbacks, several answers and hedging. After any of it the gateway's books contain at least the provider's bill, and the bill
 * exceeds the limit by at most one call.
 */
import { once } from "node:events";
import {
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, type ProviderRequest, startProvider } from "../peers/provider.ts";
import { setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const LIMIT = 600;
const MODES = ["json", "stream", "silent", "left", "early", "cut", "error", "billed_error"] as const;

interface PlannedCall {
  readonly mode: (typeof MODES)[number];
  /** Tokens that the provider writes for each answer. */
  readonly out: number;
  readonly n: number;
  readonly isBounded: boolean;
  readonly hasFailingStep: boolean;
  readonly isHedged: boolean;
  readonly model: "known" | "unknown" | "twice";
}

let provider: ProviderPeer;
let server: TestServer;
let now = Date.UTC(2030, 0, 1, 12);
let bill = 0;
let dearest = 0;

function charge(tokens: number): void {
  bill += tokens;
  dearest = Math.max(dearest, tokens);
}

interface ProviderBody {
  readonly mode: PlannedCall["mode"];
  readonly out: number;
  readonly n: number;
  readonly stream_options?: { readonly include_usage?: boolean };
}

const EVENT = `data: {"choices":[{"delta":{"content":"four"}}]}\n\n`;

async function answer(request: ProviderRequest, response: ServerResponse): Promise<void> {
  const { mode, out, n, stream_options: options } = JSON.parse(request.body) as ProviderBody;
  const input = Math.ceil(request.body.length / 4);
  const usage = { prompt_tokens: input, completion_tokens: out * n };
  const head = (status: number, type: string) => response.writeHead(status, { "content-type": type });
  if (mode !== "error") charge(input + out * n);
  switch (mode) {
    case "error":
      head(500, "application/json").end("{}");
      return;
    case "billed_error":
      head(400, "application/json").end(JSON.stringify({ error: "late", usage }));
      return;
    case "early":
      return;
    case "json":
      head(200, "application/json").end(JSON.stringify({ model: "known", choices: [{}], usage }));
      return;
    default:
      head(200, "text/event-stream");
      for (let i = 0; i < out * n; i++) response.write(EVENT);
  }
  if (mode === "left") return;
  // The bytes must be on their way before the connection breaks.
  if (mode === "cut") {
    await new Promise((resolve) => response.write("\n", resolve));
    setTimeout(() => response.destroy(), 20);
    return;
  }
  if (mode === "stream" && options?.include_usage === true) {
    response.write(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
  }
  response.end("data: [DONE]\n\n");
}

beforeAll(async () => {
  provider = await startProvider(answer);
  const broken = "http://127.0.0.1:1";
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: provider.url }, groq: { baseUrl: broken } },
      gateway: { prices: { openai: { known: DOLLAR }, groq: { known: DOLLAR } } },
    },
    clock: { now: () => now },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});

const DOLLAR = { in: 1_000_000, out: 1_000_000 };

function bodyOf({ mode, out, n, isBounded, model }: PlannedCall): string {
  const fields = {
    model: model === "unknown" ? "nobody-knows" : "known",
    mode,
    out,
    n,
    stream: mode !== "json" && mode !== "early" && mode !== "error" && mode !== "billed_error",
    ...(isBounded ? { max_tokens: out } : {}),
  };
  const text = JSON.stringify(fields);
  return model === "twice" ? text.replace("{", '{"model":"cheaper",') : text;
}

/** Resolves when the call is over for the caller. */
async function run(call: PlannedCall): Promise<void> {
  const body = bodyOf(call);
  const step = (slug: string) => ({
    provider: slug,
    endpoint: "chat/completions",
    query: JSON.parse(body) as object,
  });
  const isUniversal = call.hasFailingStep && call.model !== "twice";
  const billBefore = provider.requests.length;
  const request = httpRequest({
    port: new URL(server.url).port,
    method: "POST",
    path: isUniversal ? "/v1/default/default" : "/v1/default/default/openai/chat/completions",
    headers: {
      "content-type": "application/json",
      ...(call.isHedged ? { "gw-aig-hedge-after": "1" } : {}),
    },
    agent: false,
  });
  request.on("error", () => undefined);
  request.end(isUniversal ? JSON.stringify([step("groq"), step("openai")]) : body);
  if (call.mode === "early") await leaveEarly(request, billBefore);
  else await readAnswer(request, call);
}

/** Leaves when the provider has the call, or reads the refusal. */
async function leaveEarly(request: ClientRequest, requestsBefore: number): Promise<void> {
  let isAnswered = false;
  request.on("response", (response) => {
    isAnswered = true;
    response.resume();
  });
  await expect
    .poll(() => isAnswered || provider.requests.length > requestsBefore, { interval: 5 })
    .toBe(true);
  request.destroy();
}

async function readAnswer(request: ClientRequest, { mode, out, n }: PlannedCall): Promise<void> {
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  let bytes = 0;
  const closed = new Promise((resolve) => response.on("close", resolve));
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (mode === "left" && bytes >= EVENT.length * out * n) request.destroy();
  });
  if (mode === "left" && response.statusCode === 200 && out * n === 0) request.destroy();
  await closed;
}

async function readUsed(): Promise<{ used: number; reserved: number }> {
  const { body } = await server.api("GET", "/accounts/default/ai-gateway/gateways/default/budgets");
  return (body as { result: { budgets: [{ used: number; reserved: number }] } }).result.budgets[0];
}

it("keeps books that contain the provider's bill, which exceeds the limit by at most one call", async () => {
  const call: fc.Arbitrary<PlannedCall> = fc.record({
    mode: fc.constantFrom(...MODES),
    out: fc.integer({ min: 1, max: 30 }),
    n: fc.integer({ min: 1, max: 3 }),
    isBounded: fc.boolean(),
    hasFailingStep: fc.boolean(),
    isHedged: fc.boolean(),
    model: fc.constantFrom("known", "known", "known", "unknown", "twice"),
  });
  let exhausted = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(call, { minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 8 }),
      async (rounds) => {
        now += 86_400_000;
        bill = 0;
        dearest = 0;
        await setGateway(server, {
          spend_limits: { rules: [{ id: "all", limitType: "cost", limit: LIMIT, window: "day" }] },
        });
        for (const calls of rounds) await Promise.all(calls.map(run));
        await expect.poll(async () => (await readUsed()).reserved, { interval: 5 }).toBe(0);
        const { used } = await readUsed();
        expect(used).toBeGreaterThanOrEqual(bill);
        expect(bill).toBeLessThanOrEqual(LIMIT + dearest);
        if (used > LIMIT * 0.7) exhausted += 1;
      },
    ),
    { numRuns: 25, seed: 17 },
  );
  // The runs must reach the limit, or they show nothing.
  expect(exhausted).toBeGreaterThan(5);
});
