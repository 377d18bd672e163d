/**
 * The translation between dialects, as functions: a request of 2 KB with its response, and the events of a stream. The goals are what
 * translation adds to a call of the same dialect. Such a call parses the request once, for the limits and the log, and replaces the model's
 * name in its bytes; a translated call does neither, and its response and its events are not parsed. A third contender parses and
 * serialises the same bytes, which every translation has to do.
 */
import {
  createStreamTranslator,
  translateRequest,
  translateResponse,
  type Dialect,
  type RequestOptions,
} from "../../packages/translate/src/index.ts";
import { editMembers } from "../../packages/signalbox/src/engines/relay/index.ts";
import { inspectBody } from "../../packages/signalbox/src/gateway/step/body-facts.ts";
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

type Kind = "translated" | "same dialect" | "parsed";

const MODEL = new Map([["model", { name: "model", json: '"some-model"' }]]);

function callWork(from: Dialect, to: Dialect, kind: Kind): Work {
  const request = Buffer.from(JSON.stringify(REQUESTS[from]));
  const response = Buffer.from(JSON.stringify(UPSTREAM_RESPONSES[to]));
  return {
    times: CALLS,
    units: 1,
    run() {
      if (kind === "same dialect") {
        inspectBody(request, true);
        editMembers(request, MODEL);
        return;
      }
      const body: unknown = JSON.parse(request.toString());
      const answer: unknown = JSON.parse(response.toString());
      if (kind === "parsed") {
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

/** Null for a call of the same dialect: its events pass as they are. */
function streamWork(from: Dialect, to: Dialect, kind: Kind): Work | null {
  if (kind === "same dialect") return null;
  const events = streamOf(to, EVENTS).map((event) => Buffer.from(event));
  const { context } = translateRequest(from, to, { ...REQUESTS[from], stream: true }, options);
  return {
    times: STREAMS,
    units: events.length,
    run() {
      if (kind === "parsed") {
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

function start(kind: Kind) {
  const works = new Map<string, Work | null>();
  for (const [from, to] of PAIRS) {
    works.set(callName(from, to), callWork(from, to, kind));
    works.set(streamName(from, to), streamWork(from, to, kind));
  }
  return Promise.resolve({
    measure(scenario: string) {
      const work = works.get(scenario);
      if (work === undefined || work === null) return Promise.resolve(null);
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
const SAME = "same dialect";
const PARSED = "parse and serialise";

export const workload: Workload = {
  name: "translate",
  summary: "requests of 2 KB with their responses, and stream events, from one dialect into another",
  rounds: 7,
  contenders: [
    { name: OURS, start: () => start("translated") },
    { name: SAME, start: () => start("same dialect") },
    { name: PARSED, start: () => start("parsed") },
  ],
  scenarios: PAIRS.flatMap(([from, to]) => [
    { name: callName(from, to), metrics: [{ name: "time", unit: "µs/call", better: "lower" as const }] },
    { name: streamName(from, to), metrics: [{ name: "time", unit: "µs/event", better: "lower" as const }] },
  ]),
  goals: PAIRS.flatMap(([from, to]) => [
    {
      text: `${callName(from, to)}: at most 40 µs over the same-dialect call`,
      isMet: (median) =>
        over(median(OURS, callName(from, to), "time"), median(SAME, callName(from, to), "time")) <= 40,
    },
    {
      text: `${streamName(from, to)}: at most 4 µs an event`,
      isMet: (median) => (median(OURS, streamName(from, to), "time") ?? Infinity) <= 4,
    },
  ]),
};

function over(ours: number | null, baseline: number | null): number {
  return ours === null || baseline === null ? Infinity : ours - baseline;
}
