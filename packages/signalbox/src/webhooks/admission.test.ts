import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SignalboxError } from "@signalbox/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { Admission } from "./admission.ts";
import { readDeliveryBody } from "./delivery-body.ts";
import { Ring } from "./ring.ts";

let server: Server | undefined;

afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  server = undefined;
});

/** A server that reads each body within the limits and answers with its length or the error's name. */
async function reader(admission: Admission, limits: { maxBodyBytes: number; bodyTimeoutMs: number }) {
  server = createServer((incoming, response) => {
    readDeliveryBody(incoming, limits, admission).then(
      (body) => response.end(String(body.length)),
      (error: SignalboxError) => response.writeHead(error.status, error.headers).end(error.id),
    );
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

function open(port: number, declared?: number) {
  const outgoing = request({
    port,
    method: "POST",
    headers: declared === undefined ? {} : { "content-length": declared },
  });
  outgoing.on("error", () => undefined);
  outgoing.flushHeaders();
  return outgoing;
}

async function answer(outgoing: ReturnType<typeof open>): Promise<string> {
  const [response] = (await once(outgoing, "response")) as [AsyncIterable<Buffer>];
  let text = "";
  for await (const chunk of response) text += chunk.toString();
  return text;
}

describe("bodies in memory", () => {
  it("share one budget: what does not fit is told to come back, and room that was given back is used again", async () => {
    const admission = new Admission({ maxInFlight: 1, maxBufferedBytes: 100 });
    const port = await reader(admission, { maxBodyBytes: 1000, bodyTimeoutMs: 60_000 });
    const first = open(port, 90);
    first.write("x".repeat(80));
    await expect.poll(() => admission.bufferedBytes).toBe(80);
    const second = open(port, 50);
    second.end("x".repeat(50));
    expect(await answer(second)).toBe("overloaded");
    first.end("x".repeat(10));
    expect(await answer(first)).toBe("90");
    admission.releaseBytes(90);
    const third = open(port, 50);
    third.end("x".repeat(50));
    expect(await answer(third)).toBe("50");
  });

  it("give their room back when they are too large, too slow, or break off", async () => {
    const admission = new Admission({ maxInFlight: 1, maxBufferedBytes: 10_000 });
    const port = await reader(admission, { maxBodyBytes: 100, bodyTimeoutMs: 100 });
    const large = open(port);
    large.write("x".repeat(60));
    large.write("x".repeat(60));
    expect(await answer(large)).toBe("body_too_large");
    const slow = open(port, 90);
    slow.write("x".repeat(50));
    expect(await answer(slow)).toBe("request_timeout");
    const broken = open(port, 90);
    broken.write("x".repeat(50));
    await expect.poll(() => admission.bufferedBytes).toBe(50);
    broken.destroy();
    await expect.poll(() => admission.bufferedBytes).toBe(0);
  });
});

describe("deliveries at work", () => {
  it("are bounded", () => {
    const admission = new Admission({ maxInFlight: 2, maxBufferedBytes: 1 });
    admission.enter();
    admission.enter();
    expect(() => admission.enter()).toThrow(SignalboxError);
    admission.leave();
    admission.enter();
    expect(admission.inFlight).toBe(2);
  });
});

describe("a ring", () => {
  it("holds the newest items in order", () => {
    const ring = new Ring<number>(3);
    for (const item of [1, 2, 3, 4, 5]) ring.push(item);
    expect(ring.toArray()).toEqual([3, 4, 5]);
    const none = new Ring<number>(0);
    none.push(1);
    expect(none.toArray()).toEqual([]);
  });
});
