/**
 * The translation between dialects, as functions: a request of 2 KB with its response, and the events of a stream. The
 * baseline parses and serialises the same bytes without translating, which a call of the same dialect does not even do.
 */
import {
  createStreamTranslator,
  translateRequest,
  translateResponse,
  type Dialect,
  type RequestOptions,
} from "../../packages/translate/src/index.ts";
import { UPSTREAM_RESPONSES } from "../../packages/translate/src/upstream-responses-fixture.ts";
import type { Workload } from "../support/workload.ts";
import { REQUESTS, streamOf } from "../support/translate-data.ts";

const CALLS = 20_000;
const STREAMS = 400;
/** Deltas of text in one stream. */
const EVENTS = 200;

const PAIRS: readonly (readonly [Dialect, Dialect])[] = [
  ["chat", "messages"],
  ["messages", "chat"],
  ["messages", "gemini"],
  ["responses", "chat"],
  ["responses", "messages"],
];
const callName = (from: Dialect, to: Dialect) => `call: ${from} to ${to}`;
const streamName = (from: Dialect, to: Dialect) => `stream: ${to} for a ${from} client`;

const options: RequestOptions = {
  model: "some-model",
  target: {},
  dropUnsupported: true,
  newId: (prefix) => `${prefix}01HZX`,
  now: 1_700_000_000,
};

interface Work {
  /** One call or one stream. */
  run(): void;
  readonly times: number;
  /** Units in one run: 1 call, or the events of a stream. */
  readonly units: number;
}

function callWork(from: Dialect, to: Dialect, isBaseline: boolean): Work {
  const request = Buffer.from(JSON.stringify(REQUESTS[from]));
  const response = Buffer.from(JSON.stringify(UPSTREAM_RESPONSES[to]));
  return {
    times: CALLS,
    units: 1,
    run() {
      const body: unknown = JSON.parse(request.toString());
      const answer: unknown = JSON.parse(response.toString());
      if (isBaseline) {
        JSON.stringify(body);
        JSON.stringify(answer);
        return;
      }
      const translated = translateRequest(from, to, body, options);
      JSON.stringify(translated.body);
      JSON.stringify(translateResponse(translated.context, answer));
    },
  };
}

function streamWork(from: Dialect, to: Dialect, isBaseline: boolean): Work {
  const events = streamOf(to, EVENTS).map((event) => Buffer.from(event));
  const { context } = translateRequest(from, to, { ...REQUESTS[from], stream: true }, options);
  return {
    times: STREAMS,
    units: events.length,
    run() {
      if (isBaseline) {
        for (const event of events) {
          const text = event.toString();
          const data = text.slice(text.indexOf("data: ") + 6);
          if (!data.startsWith("[DONE]")) JSON.stringify(JSON.parse(data));
        }
        return;
      }
      const translator = createStreamTranslator(context);
      for (const event of events) translator.write(event);
      translator.end();
      if (!translator.isComplete) throw new Error(`the stream from ${to} for ${from} is not complete`);
    },
  };
}

function start(isBaseline: boolean) {
  const works = new Map<string, Work>();
  for (const [from, to] of PAIRS) {
    works.set(callName(from, to), callWork(from, to, isBaseline));
    works.set(streamName(from, to), streamWork(from, to, isBaseline));
  }
  return Promise.resolve({
    measure(scenario: string) {
      const work = works.get(scenario);
      if (work === undefined) return Promise.resolve(null);
      for (let i = 0; i < work.times / 10; i++) work.run();
      const startedAt = process.cpuUsage();
      for (let i = 0; i < work.times; i++) work.run();
      const { user, system } = process.cpuUsage(startedAt);
      return Promise.resolve({ time: (user + system) / (work.times * work.units) });
    },
    stop: () => Promise.resolve(),
  });
}

const OURS = "translated";
const BASELINE = "parse and serialise";

export const workload: Workload = {
  name: "translate",
  summary: "requests of 2 KB with their responses, and stream events, from one dialect into another",
  rounds: 7,
  contenders: [
    { name: OURS, start: () => start(false) },
    { name: BASELINE, start: () => start(true) },
  ],
  scenarios: PAIRS.flatMap(([from, to]) => [
    { name: callName(from, to), metrics: [{ name: "time", unit: "µs/call", better: "lower" as const }] },
    { name: streamName(from, to), metrics: [{ name: "time", unit: "µs/event", better: "lower" as const }] },
  ]),
  goals: PAIRS.flatMap(([from, to]) => [
    {
      text: `${callName(from, to)}: at most 40 µs over the baseline`,
      isMet: (median) =>
        over(median(OURS, callName(from, to), "time"), median(BASELINE, callName(from, to), "time")) <= 40,
    },
    {
      text: `${streamName(from, to)}: at most 4 µs an event over the baseline`,
      isMet: (median) =>
        over(median(OURS, streamName(from, to), "time"), median(BASELINE, streamName(from, to), "time")) <= 4,
    },
  ]),
};

function over(ours: number | null, baseline: number | null): number {
  return ours === null || baseline === null ? Infinity : ours - baseline;
}
