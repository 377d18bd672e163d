import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Worker } from "node:worker_threads";
import fc from "fast-check";
import { expect, it } from "vitest";
import { decode } from "../../../../../test/peers/otlp-receiver.ts";
import { Histograms } from "./histograms.ts";
import { OtlpExporter, type OtlpReceiver } from "./otlp-exporter.ts";
import type { Span } from "./span.ts";
import { toNanos } from "./metric-text.ts";
import { readSpans } from "./read-spans.ts";
import { KnownTexts, SpanBatch } from "./span-batch.ts";
import { EncodedTexts, spansToProtobuf } from "./spans-to-protobuf.ts";
import { toProtobuf } from "./to-protobuf.ts";

const SPAN: Span = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parentSpanId: null,
  name: "chat",
  kind: 3,
  startMs: 1_700_000_000_000.25,
  endMs: 1_700_000_000_001,
  attributes: [],
  error: null,
};

const FRAME = {
  resource: { attributes: [{ key: "service.name", value: { stringValue: "signalbox" } }] },
  scope: { name: "signalbox", version: "1" },
  schemaUrl: "https://example.com/schema",
};

it("a span arrives with the values it was given, whatever they are", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary" }),
      fc.dictionary(
        fc.string({ unit: "grapheme" }),
        fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.double(), fc.array(fc.string())),
      ),
      fc.option(fc.string(), { nil: null }),
      (name, attributes, error) => {
        const list = Object.entries(attributes).flat();
        const known = new KnownTexts();
        const batch = new SpanBatch(known);
        batch.add(SPAN);
        batch.add({ ...SPAN, name, attributes: list, error });
        const added = known.from(0);
        const numbers = batch.copyNumbers();
        const spans = readSpans(numbers, batch.texts, added);
        const [, read] = spans as [
          object,
          {
            name: string;
            attributes: { key: string; value: Record<string, unknown> }[];
          },
        ];
        expect(read.name).toBe(name);
        expect(read.attributes.map(({ key }) => key)).toEqual(Object.keys(attributes));
        for (const { key, value } of read.attributes) {
          const given = attributes[key];
          if (typeof given === "string") expect(value["stringValue"]).toBe(given);
          if (typeof given === "boolean") expect(value["boolValue"]).toBe(given);
          if (typeof given === "number" && Number.isSafeInteger(given))
            expect(BigInt(value["intValue"] as string)).toBe(BigInt(given));
        }
        const { resource, scope, schemaUrl } = FRAME;
        const data = { resourceSpans: [{ resource, scopeSpans: [{ scope, spans, schemaUrl }], schemaUrl }] };
        const bytes = spansToProtobuf(numbers, batch.texts, new EncodedTexts(added), FRAME);
        expect(bytes.equals(toProtobuf("TracesData", data))).toBe(true);
      },
    ),
  );
});

it("protobuf has lengths of any size, and numbers of both signs", () => {
  const values = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }).map((stringValue) => ({ stringValue })),
    fc.integer({ min: 100, max: 40_000 }).map((length) => ({ stringValue: "ü".repeat(length) })),
    fc.maxSafeInteger().map((number) => ({ intValue: String(number) })),
    fc.double({ noNaN: true }).map((doubleValue) => ({ doubleValue })),
    fc.boolean().map((boolValue) => ({ boolValue })),
  );
  fc.assert(
    fc.property(fc.array(values, { maxLength: 8 }), (list) => {
      const attributes = list.map((value, i) => ({ key: `k${i}`, value }));
      const bytes = toProtobuf("TracesData", { resourceSpans: [{ resource: { attributes } }] });
      const { resourceSpans } = decode("TracesData", bytes) as {
        resourceSpans: { resource: { attributes?: { key: string; value: Record<string, unknown> }[] } }[];
      };
      const read = resourceSpans[0]?.resource.attributes ?? [];
      expect(read.map(({ value }) => comparable(value))).toEqual(
        list.map((value) => comparable(value as Record<string, unknown>)),
      );
    }),
    { numRuns: 60 },
  );
});

/** Numbers of protobuf are unsigned in the decoder, and a flag is one. */
function comparable({ stringValue, intValue, doubleValue, boolValue }: Record<string, unknown>): unknown[] {
  if (stringValue !== undefined) return ["text", Buffer.from(stringValue as string).toString()];
  if (intValue !== undefined) return ["integer", BigInt.asIntN(64, BigInt(intValue as string))];
  return doubleValue === undefined ? ["flag", Number(boolValue)] : ["double", doubleValue];
}

it("times keep their fractions of a millisecond", () => {
  expect(toNanos(1_700_000_000_000.25)).toBe(1_700_000_000_000_250_000n);
  expect(toNanos(0.5)).toBe(500_000n);
});

it("a member that the table does not know is an error, not a loss", () => {
  expect(() => toProtobuf("TracesData", { resourceSpans: [{ other: 1 }] })).toThrow("no member other");
});

it("histograms of more sets of attributes than the limit are counted together", () => {
  const histograms = new Histograms(0);
  const instrument = { name: "x", unit: "1", description: "", bounds: [1, 2] };
  for (let i = 0; i < 2100; i++)
    histograms.record(
      histograms.series(instrument, `k${i}`, () => ["k", i]),
      i % 3,
    );
  const { histogram } = JSON.parse(histograms.text(1)) as {
    histogram: { dataPoints: { count: string; attributes: { key: string }[] }[] };
  };
  expect(histogram.dataPoints).toHaveLength(2001);
  const last = histogram.dataPoints.at(-1);
  expect([last?.count, last?.attributes[0]?.key]).toEqual(["100", "otel.metric.overflow"]);
});

function receiverAt(port: number, mayBePrivate = true): OtlpReceiver {
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    headers: {},
    format: "json",
    isCompressed: false,
    timeoutMs: 30_000,
    mayBePrivate,
  };
}

const options = {
  resource: [],
  scope: { name: "test", version: "1" },
  maxQueuedSpans: 10,
  maxBatchSpans: 5,
  delayMs: 10_000,
  onFailure: () => undefined,
};

it("a queue that is full drops spans and counts them, and does not build those", async () => {
  const server = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(server, "listening");
  const exporter = new OtlpExporter({ ...options, maxBatchSpans: 1000 });
  let built = 0;
  for (let i = 0; i < 25; i++) {
    exporter.add([receiverAt((server.address() as AddressInfo).port)], () => {
      built += 1;
      return [SPAN];
    });
  }
  expect([built, exporter.counts.dropped]).toEqual([10, 15]);
  await exporter.close(50);
  server.closeAllConnections();
  server.close();
});

it("sends what is queued when it closes, and retries a receiver that is busy", async () => {
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    request.resume();
    response.writeHead(requests === 1 ? 503 : 200).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const exporter = new OtlpExporter(options);
  exporter.add([receiverAt((server.address() as AddressInfo).port)], () => [SPAN, SPAN]);
  await exporter.close(100_000);
  expect([requests, exporter.counts]).toEqual([2, { sent: 2, dropped: 0 }]);
  server.close();
});

it("refuses a private address of a receiver that the operator did not choose", async () => {
  const failures: string[] = [];
  const exporter = new OtlpExporter({ ...options, onFailure: (_, reason) => failures.push(reason) });
  exporter.add([receiverAt(9, false)], () => [SPAN]);
  await exporter.close(100_000);
  expect([failures, exporter.counts.dropped]).toEqual([["127.0.0.1 is a private address"], 1]);
});

it("a receiver that does not answer loses its own spans, not those of another one", async () => {
  const listening = async (answers: boolean) => {
    const server = createServer((request, response) => {
      request.resume();
      if (answers) response.end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return server;
  };
  const servers = [await listening(false), await listening(true)];
  const [silent = [], answering = []] = servers.map((server) => [
    receiverAt((server.address() as AddressInfo).port),
  ]);
  const failures = new Set<string>();
  const exporter = new OtlpExporter({
    ...options,
    maxBatchSpans: 1,
    onFailure: (_, reason) => failures.add(reason),
  });
  for (let i = 0; i < 30; i++) exporter.add(silent, () => [SPAN]);
  for (let i = 0; i < 8; i++) exporter.add(answering, () => [SPAN]);
  await expect.poll(() => exporter.counts.sent).toBe(8);
  expect([exporter.counts.dropped, [...failures]]).toEqual([22, ["the receiver is too slow"]]);
  for (const server of servers) server.closeAllConnections();
  await exporter.close(1);
  for (const server of servers) server.close();
});

it("batches that the worker has no room for wait, and are sent when it has finished others", async () => {
  const held: (() => void)[] = [];
  const received: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    received.push(request.url ?? "");
    if (request.url === "/v1/traces") response.end();
    else held.push(() => response.end());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const last = receiverAt((server.address() as AddressInfo).port);
  const exporter = new OtlpExporter({ ...options, maxBatchSpans: 1 });
  for (let slow = 0; slow < 8; slow++) {
    const receivers = [{ ...last, url: `${last.url}/${slow}` }];
    for (let i = 0; i < 8; i++) exporter.add(receivers, () => [SPAN]);
  }
  exporter.add([last], () => [{ ...SPAN, name: "the last one" }]);
  await expect.poll(() => held.length).toBe(8);
  expect(received).not.toContain("/v1/traces");
  held[0]?.();
  await expect.poll(() => received).toContain("/v1/traces");
  server.closeAllConnections();
  await exporter.close(0);
  server.close();
});

it("after the death of its thread the exporter sends batches that refer to texts of earlier ones", async () => {
  const threads: Worker[] = [];
  const onWorker = (worker: Worker) => threads.push(worker);
  process.on("worker", onWorker);
  const names: string[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.once("end", () => {
      const [name] = /"name":"[^"]*"(?=,"kind")/.exec(text) ?? [];
      names.push(name ?? text);
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const receivers = [receiverAt((server.address() as AddressInfo).port)];
  const exporter = new OtlpExporter({ ...options, maxBatchSpans: 2 });
  const add = (name: string) => exporter.add(receivers, () => [{ ...SPAN, name }]);
  add("first");
  add("second");
  await expect.poll(() => exporter.counts.sent).toBe(2);
  add("second");
  await threads[0]?.terminate();
  add("first");
  await expect.poll(() => exporter.counts.sent).toBe(4);
  expect([names, threads.length]).toEqual([['"name":"first"', '"name":"second"'], 2]);
  process.off("worker", onWorker);
  await exporter.close(100_000);
  server.close();
});

it("spans that wait are counted as dropped when the exporter is closed", async () => {
  const server = createServer((request) => request.resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const exporter = new OtlpExporter({ ...options, maxBatchSpans: 1 });
  for (let receiver = 0; receiver < 9; receiver++) {
    const receivers = [{ ...receiverAt(port), url: `http://127.0.0.1:${port}/${receiver}` }];
    for (let i = 0; i < 8; i++) exporter.add(receivers, () => [SPAN, SPAN]);
  }
  await exporter.close(1);
  // Those of the worker are lost with its thread, those of the queue with the queue.
  expect(exporter.counts).toEqual({ sent: 0, dropped: 144 });
  server.closeAllConnections();
  server.close();
});

it("an amount is a double, also if it is a whole number", () => {
  const known = new KnownTexts();
  const batch = new SpanBatch(known);
  batch.add({ ...SPAN, attributes: ["gen_ai.usage.cost", 0, "gen_ai.usage.input_tokens", 7] });
  const [span] = readSpans(batch.copyNumbers(), batch.texts, known.from(0));
  expect(span).toMatchObject({
    attributes: [
      { key: "gen_ai.usage.cost", value: { doubleValue: 0 } },
      { key: "gen_ai.usage.input_tokens", value: { intValue: "7" } },
    ],
  });
});
