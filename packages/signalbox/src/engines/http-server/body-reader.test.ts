import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import type { HttpApplication } from "./application.ts";
import { type BodyFailure, type BodyLimits, readBody } from "./body-reader.ts";
import { Listener } from "./listener.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { HeldMemory } from "./tracking.ts";

const sockets: Socket[] = [];
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const close of closers.splice(0)) await close();
});

interface Reading {
  /** `whole: …`, `streamed: …`, `none`, or the failure, in the order they were reported. */
  readonly outcomes: string[];
  readonly memory: HeldMemory;
}

const LISTENER_LIMITS = {
  maxHeaderBytes: 16_384,
  headerTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  idleTimeoutMs: 600_000,
  maxConnections: 10,
};

describe.each(["own", "node"] as const)("engine %s", (engine) => {
  /** A server that reads every body with these limits, and a connection to it. */
  async function reader(limits: BodyLimits): Promise<{ readings: Reading[]; socket: Socket }> {
    const readings: Reading[] = [];
    const application: HttpApplication = {
      requestId: () => "1",
      handle(request, response) {
        const reading: Reading = { outcomes: [], memory: new HeldMemory() };
        readings.push(reading);
        response.on("close", () => reading.memory.release());
        readBody(request, reading.memory, limits, {
          onBody(body) {
            if (body.kind === "whole") reading.outcomes.push(`whole: ${body.bytes.toString()}`);
            else if (body.kind === "none") reading.outcomes.push("none");
            else {
              void text(body.rest).then(
                (rest) => reading.outcomes.push(`streamed: ${body.start.toString()}|${rest}`),
                () => undefined,
              );
            }
          },
          onFailure: (failure: BodyFailure) => reading.outcomes.push(failure),
        });
      },
      upgrade: () => undefined,
      refuse: () => undefined,
      refusalText: () => "",
      ended: () => undefined,
      connection: () => undefined,
      malformed: () => undefined,
    };
    const listener = new Listener(application, LISTENER_LIMITS, null, engine);
    const { port } = await listener.listen("127.0.0.1", 0);
    closers.push(async () => {
      listener.drain();
      await listener.close(0);
    });
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    sockets.push(socket);
    return { readings, socket };
  }

  const HEAD = "POST / HTTP/1.1\r\nhost: x\r\n";

  async function outcomesOf(limits: BodyLimits, ...pieces: string[]): Promise<string[]> {
    const { readings, socket } = await reader(limits);
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await expect.poll(() => readings[0]?.outcomes.length ?? 0).toBeGreaterThan(0);
    return readings[0]?.outcomes ?? [];
  }

  it("passes on a whole body, with a declared length and in chunks, in one piece and in several", async () => {
    const limits = { maxBytes: 100 };
    expect(await outcomesOf(limits, `${HEAD}content-length: 5\r\n\r\nhello`)).toEqual(["whole: hello"]);
    expect(await outcomesOf(limits, `${HEAD}content-length: 5\r\n\r\nhe`, "ll", "o")).toEqual([
      "whole: hello",
    ]);
    expect(
      await outcomesOf(
        limits,
        `${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n`,
        "3\r\nllo\r\n0\r\n\r\n",
      ),
    ).toEqual(["whole: hello"]);
  });

  it("reports an empty body as none", async () => {
    expect(await outcomesOf({ maxBytes: 100 }, `${HEAD}\r\n`)).toEqual(["none"]);
    expect(await outcomesOf({ maxBytes: 100 }, `${HEAD}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`)).toEqual(
      ["none"],
    );
  });

  it("refuses a declared length over the maximum before the first byte", async () => {
    expect(await outcomesOf({ maxBytes: 4 }, `${HEAD}content-length: 5\r\n\r\n`)).toEqual(["too_large"]);
  });

  it("refuses a chunked body as soon as it exceeds the maximum", async () => {
    expect(
      await outcomesOf({ maxBytes: 4 }, `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`),
    ).toEqual(["too_large"]);
  });

  it("refuses a transfer coding that Node does not decode", async () => {
    expect(
      await outcomesOf({ maxBytes: 100 }, `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`),
    ).toEqual(["unsupported_coding"]);
  });

  it("streams the part of a body that exceeds `keepBytes`", async () => {
    const limits = { maxBytes: 100, keepBytes: 4 };
    const [outcome = ""] = await outcomesOf(limits, `${HEAD}content-length: 10\r\n\r\nhello`, "world");
    expect(outcome.replace("|", "")).toBe("streamed: helloworld");
  });

  it("reports a streamed body that grows over the maximum, after it has begun", async () => {
    const limits = { maxBytes: 8, keepBytes: 4 };
    expect(
      await outcomesOf(limits, `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`, "5\r\nworld\r\n"),
    ).toEqual(["too_large"]);
  });

  it.each(["content-length: 10\r\n\r\nhello", "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"])(
    "reports a body whose connection ends early: %j",
    async (rest) => {
      const { readings, socket } = await reader({ maxBytes: 100 });
      socket.write(HEAD + rest);
      await expect.poll(() => readings.length).toBe(1);
      socket.destroy();
      await expect.poll(() => readings[0]?.outcomes).toEqual(["broken_off"]);
    },
  );

  it("refuses a body that does not fit into the budget, and releases what it held", async () => {
    const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 60_000 });
    const body = "x".repeat(2000);
    expect(
      await outcomesOf(
        { maxBytes: 5000, share: budget.shareOf("a") },
        `${HEAD}content-length: 2000\r\n\r\n${body}`,
      ),
    ).toEqual(["no_room"]);
    expect(budget.used).toBe(0);
  });

  it("holds the memory of a body until its response has ended", async () => {
    const budget = new MemoryBudget({ maxBytes: 10_000, stallMs: 60_000 });
    const { readings, socket } = await reader({ maxBytes: 5000, share: budget.shareOf("a") });
    socket.write(`${HEAD}content-length: 5\r\n\r\nhello`);
    await expect.poll(() => readings[0]?.outcomes).toEqual(["whole: hello"]);
    expect(budget.used).toBeGreaterThanOrEqual(5);
    socket.destroy();
    await expect.poll(() => budget.used).toBe(0);
  });

  it("closes a body that never begins if the budget limits the total time", async () => {
    const budget = new MemoryBudget({ maxBytes: 10_000, stallMs: 60_000, totalMs: 20 });
    expect(
      await outcomesOf({ maxBytes: 100, share: budget.shareOf("a") }, `${HEAD}content-length: 5\r\n\r\n`),
    ).toEqual(["too_slow"]);
  });
});
