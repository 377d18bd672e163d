import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DeliveryRecord } from "./delivery-record.ts";
import { WaitingDeliveries } from "./waiting-deliveries.ts";

function delivery(number: number, changes: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return {
    id: String(number),
    accountId: "default",
    source: "github",
    status: "accepted",
    reason: "processed",
    httpStatus: 200,
    receivedAt: 1_800_000_000_000 + number,
    durationMs: 0.25,
    deliveryId: `d-${number}`,
    type: "push",
    title: "A push",
    agent: "webhook-agent",
    instance: "acme-widgets",
    contentType: null,
    headers: {},
    bodyBytes: 0,
    body: null,
    ...changes,
  };
}

const plain = (records: readonly DeliveryRecord[]) =>
  records.map((record) => ({
    ...record,
    body: record.body === null ? null : Buffer.from(record.body).toString("base64"),
  }));

const drawn = fc.record({
  title: fc.string({ unit: "binary", maxLength: 200 }),
  headers: fc.dictionary(fc.string(), fc.string({ unit: "binary" }), { maxKeys: 3 }),
  body: fc.option(fc.uint8Array({ maxLength: 40 })),
  /** Many times this, to fill slabs. */
  padding: fc.constantFrom(0, 0, 5_000, 300_000),
});

describe("deliveries that wait", () => {
  it("come back as they were, the newest of them, whatever they hold and however large they are", () => {
    fc.assert(
      fc.property(
        fc.array(drawn, { maxLength: 60 }),
        fc.integer({ min: 1, max: 40 }),
        (drawings, capacity) => {
          const waiting = new WaitingDeliveries(capacity);
          const records = drawings.map(({ title, headers, body, padding }, i) =>
            delivery(i, {
              title,
              headers,
              body: body === null ? null : Buffer.concat([body, Buffer.alloc(padding, i)]),
            }),
          );
          const half = Math.floor(records.length / 2);
          for (const part of [records.slice(0, half), records.slice(half)]) {
            for (const record of part) waiting.push(record);
            const expected = JSON.parse(JSON.stringify(plain(part.slice(-capacity)))) as unknown;
            expect(plain(waiting.drain())).toEqual(expected);
          }
          expect(waiting.drain()).toEqual([]);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("use a bounded amount of memory, however many come", () => {
    const waiting = new WaitingDeliveries(100);
    const body = Buffer.alloc(4096);
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 20_000; i++) waiting.push(delivery(i, { body }));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2 * 1024 * 1024);
    expect(waiting.drain().map(({ id }) => id)).toEqual(
      Array.from({ length: 100 }, (_, i) => `${19_900 + i}`),
    );
  });

  it("wait without their bodies when there are too many bytes, and with them again later", () => {
    const waiting = new WaitingDeliveries(1000);
    const body = Buffer.alloc(256 * 1024);
    for (let i = 0; i < 100; i++) waiting.push(delivery(i, { body }));
    const records = waiting.drain();
    expect(records).toHaveLength(100);
    expect(records.filter((record) => record.body !== null)).toHaveLength(64);
    waiting.push(delivery(100, { body }));
    expect(waiting.drain()[0]?.body).toHaveLength(body.length);
  });

  it("do not wait at all where none are kept", () => {
    const waiting = new WaitingDeliveries(0);
    waiting.push(delivery(1));
    expect(waiting.drain()).toEqual([]);
  });
});
