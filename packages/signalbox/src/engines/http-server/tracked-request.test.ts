import { connect } from "node:net";
import type { Readable } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpApplication, ListenerEngine } from "./application.ts";
import { Listener } from "./listener.ts";

const LIMITS = {
  maxHeaderBytes: 16_384,
  headerTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  idleTimeoutMs: 600_000,
  maxConnections: 10,
};
const COUNT = 200_000;
const HEAD = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
/** Reads of 64 KiB have 10,922 chunks of a byte; the first one may be followed by another. */
const MOST_AT_ONCE = 25_000;

/** A listener that receives bodies, and a connection to it. */
async function open(engine: ListenerEngine, onBody: (body: Readable, end: () => void) => void) {
  const application: HttpApplication = {
    requestId: () => "1",
    handle: ({ body }, response) => onBody(body, () => void response.end()),
    upgrade: () => undefined,
    refuse: () => undefined,
    refusalText: () => "",
    ended: () => undefined,
    connection: () => undefined,
    malformed: () => undefined,
  };
  const listener = new Listener(application, LIMITS, null, engine);
  const { port } = await listener.listen("127.0.0.1", 0);
  const socket = connect(port, "127.0.0.1");
  onTestFinished(async () => {
    socket.destroy();
    listener.drain();
    await listener.close(0);
  });
  return socket;
}

describe.each(["own", "node"] as const)("engine %s", (engine) => {
  it("a body in chunks of one byte is read in turns with other connections", async () => {
    let most = 0;
    let thisTurn = 0;
    let total = 0;
    const ended = Promise.withResolvers<void>();
    const socket = await open(engine, (body, end) => {
      let isEnded = false;
      const turn = () => {
        most = Math.max(most, thisTurn);
        thisTurn = 0;
        if (isEnded) ended.resolve();
        else setImmediate(turn);
      };
      turn();
      body.on("data", (chunk: Buffer) => {
        thisTurn += chunk.length;
        total += chunk.length;
      });
      body.on("end", () => {
        isEnded = true;
        end();
      });
    });
    socket.resume().write(`${HEAD}${"1\r\na\r\n".repeat(COUNT)}0\r\n\r\n`);
    await ended.promise;
    expect(total).toBe(COUNT);
    expect(most).toBeLessThan(MOST_AT_ONCE);
  });

  it.each([1023, 1024, 1025, 2048, 12_000])(
    "requests with bodies of %i chunks follow each other, pipelined or not, also if a body is not read",
    async (count) => {
      const lengths: number[] = [];
      const socket = await open(engine, (body, end) => {
        const at = lengths.push(0) - 1;
        // The second one of each three is answered at once.
        if (at % 3 === 1) end();
        else body.on("data", () => (lengths[at] = (lengths[at] ?? 0) + 1)).on("end", end);
      });
      let text = "";
      socket.on("data", (data) => (text += data.toString("latin1")));
      const request = `${HEAD}${"1\r\na\r\n".repeat(count)}0\r\n\r\n`;
      const answers = () => text.split("HTTP/1.1 200").length - 1;
      for (const [sent, due] of [
        [1, 1],
        [1, 2],
        [1, 3],
        [3, 6],
      ] as const) {
        socket.write(request.repeat(sent));
        await expect.poll(answers).toBe(due);
      }
      expect(lengths).toEqual([count, 0, count, count, 0, count]);
    },
  );
});
