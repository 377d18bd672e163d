/**
 * What guardrails cost a call: the gateway with ten local rules, with the same rules disabled, and without rules, one core each. Rows only, because
 * bodies cost all of them the same. The prompt is prose, so that the rules read all of it and find nothing; in one scenario it has an e-mail address,
 * which is masked.
 */
import { startProvider } from "../rivals/gateways.ts";
import { meterCpu } from "../support/cpu-times.ts";
import { runLoad } from "../support/load.ts";
import { roundsOf, sized } from "../support/quick.ts";
import { buildRequest } from "../support/requests.ts";
import { type RunningSignalbox, startSignalbox, THIS_CHECKOUT } from "../support/signalbox.ts";
import { type Contender, loadMetrics, type Median, type Workload } from "../support/workload.ts";

const ROOT_TOKEN = "root-token-of-the-benchmark";
const RULES = "ten rules";
const DISABLED = "ten rules, disabled";
const NONE = "no rules";

const CALLS = "JSON of 4 KB, 32 connections";
const MASKED = "the same with a text that is masked";
const LONG_KB = 200;
const LONG = `JSON of ${LONG_KB} KB, 4 connections`;
const STREAMS = "64 streams of 50 events, 10 ms apart";
const BURST = "streams of 50 events in one write, 32 connections";

const TEXT = `The signal box by the railway line was built in 1889, and its forty levers were in use until the line was electrified.
A trainee learned the block instruments first: "Is the line clear?" is two beats, and nobody gives it for a train that has not been offered.
In winter the points were kept free of ice by hand, which took three people and most of the night; see chapter 12, pages 210 to 214.
`;
const prose = (length: number) => TEXT.repeat(Math.ceil(length / TEXT.length)).slice(0, length);
const bodyOf = (text: string, options: object = {}) =>
  JSON.stringify({
    model: "gpt-4o-mini",
    ...options,
    messages: [
      { role: "system", content: "You answer in one paragraph." },
      { role: "user", content: text },
    ],
  });
const BODIES: Readonly<Record<string, string>> = {
  [CALLS]: bodyOf(prose(4000)),
  [MASKED]: bodyOf(`${prose(3970)} Write to ada@example.org.`),
  [LONG]: bodyOf(prose(LONG_KB * 1024)),
  [STREAMS]: bodyOf(prose(1000), { stream: true }),
  // The provider takes the user "burst" as the wish for one write.
  [BURST]: bodyOf(prose(1000), { stream: true, user: "burst" }),
};

const TEN_RULES = [
  { id: "people", type: "pii", kinds: ["email", "phone"], action: "mask" },
  { id: "money", type: "pii", kinds: ["card", "iban"], action: "block" },
  { id: "numbers", type: "pii", kinds: ["national_id", "passport"], action: "flag" },
  { id: "machines", type: "pii", kinds: ["ip"], action: "flag" },
  { id: "keys", type: "secrets", action: "block" },
  { id: "projects", type: "words", words: ["Blue Heron", "Red Kite", "Grey Wagtail"], action: "flag" },
  { id: "rivals", type: "words", words: ["Contoso", "Fabrikam", "Northwind"], action: "block" },
  { id: "tickets", type: "regex", pattern: String.raw`\bACME-[0-9]{4,6}\b`, action: "mask" },
  { id: "hosts", type: "regex", pattern: String.raw`\b[a-z0-9-]+\.internal\.example\.com\b`, action: "mask" },
  { id: "orders", type: "regex", pattern: String.raw`\b[A-Z]{2}[0-9]{8}\b`, action: "flag" },
];

const CONNECTIONS: Readonly<Record<string, number>> = {
  [CALLS]: 32,
  [MASKED]: 32,
  [LONG]: 4,
  [STREAMS]: 64,
  [BURST]: 32,
};
const LOAD_MS = sized(1500);
/** A trickled stream takes half a second, and many have to be measured. */
const TRICKLED_MS = sized(4000);
const WARM_UP_MS = 700;
const HEADERS = {
  "content-type": "application/json",
  authorization: "Bearer provider-key",
  "gw-aig-authorization": `Bearer ${ROOT_TOKEN}`,
  "gw-aig-collect-log-payload": "false",
};

let provider: ReturnType<typeof startProvider> | undefined;
let users = 0;

function contender(name: string, rules: readonly object[] | null): Contender {
  return {
    name,
    async start() {
      users += 1;
      const { port: providerPort } = await (provider ??= startProvider());
      const server = await startWithRules(providerPort, rules);
      const requests = Object.fromEntries(
        Object.entries(BODIES).map(([scenario, body]) => [
          scenario,
          [buildRequest("POST", "/v1/default/default/openai/chat/completions", HEADERS, body)],
        ]),
      );
      const load = (scenario: string, durationMs: number) =>
        runLoad({
          port: server.port,
          connections: CONNECTIONS[scenario] ?? 1,
          durationMs,
          requests: requests[scenario] ?? [],
        });
      for (const scenario of Object.keys(BODIES)) await load(scenario, WARM_UP_MS);
      return {
        async measure(scenario) {
          const cpu = meterCpu(server);
          const result = await load(scenario, scenario === STREAMS ? TRICKLED_MS : LOAD_MS);
          return { calls: result.perSecond, p50: result.p50Ms, p99: result.p99Ms, ...cpu(result.requests) };
        },
        cpuTimes: server.cpuTimes,
        async stop() {
          await server.stop();
          users -= 1;
          if (users === 0) await (await provider)?.stop();
        },
      };
    },
  };
}

async function startWithRules(
  providerPort: number,
  rules: readonly object[] | null,
): Promise<RunningSignalbox> {
  const server = await startSignalbox({
    checkout: THIS_CHECKOUT,
    config: { providers: { openai: { baseUrl: `http://127.0.0.1:${providerPort}/v1` } } },
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });
  if (rules === null) return server;
  const path = "/accounts/default/ai-gateway/gateways/default/guardrails";
  const response = await fetch(server.url + path, {
    method: "PUT",
    headers: { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ rules }),
  });
  if (!response.ok) throw new Error(await response.text());
  return server;
}

const METRICS = loadMetrics("calls", "call");
const cpuOf = (median: Median, name: string, scenario: string) => median(name, scenario, "cpu") ?? Number.NaN;
/** CPU time that the rules add. */
const addedTo = (scenario: string, median: Median) =>
  cpuOf(median, RULES, scenario) - cpuOf(median, NONE, scenario);
const figureOf = (value: number, unit: string) =>
  Number.isNaN(value) ? null : `${value.toFixed(0)} ${unit}`;

export const workload: Workload = {
  name: "guardrails",
  summary:
    "calls and streams with ten local guardrails, with the same disabled, and without any, one core each",
  rounds: roundsOf(5),
  contenders: [
    contender(RULES, TEN_RULES),
    contender(
      DISABLED,
      TEN_RULES.map((rule) => ({ ...rule, enabled: false })),
    ),
    contender(NONE, null),
  ],
  scenarios: [CALLS, MASKED, LONG, STREAMS, BURST].map((name) => ({ name, metrics: METRICS })),
  headlines: [
    {
      text: "of CPU time that ten local guardrails add to a JSON call of 4 KB",
      figure: (median) => figureOf(addedTo(CALLS, median), "µs"),
    },
    {
      text: "of CPU time that they add for each KB of a long prompt",
      figure: (median) => figureOf(addedTo(LONG, median) / LONG_KB, "µs"),
    },
  ],
  goals: [
    {
      text: `disabled rules cost a call at most 3 % of CPU time, which is the noise`,
      isMet: (median) => cpuOf(median, DISABLED, CALLS) <= 1.03 * cpuOf(median, NONE, CALLS),
    },
    {
      text: "ten local rules add at most 60 µs of CPU time to a JSON call of 4 KB",
      isMet: (median) => addedTo(CALLS, median) <= 60,
    },
    {
      text: "and at most 10 % to a stream",
      isMet: (median) => cpuOf(median, RULES, STREAMS) <= 1.1 * cpuOf(median, NONE, STREAMS),
    },
  ],
};
