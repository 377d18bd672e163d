import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { HttpApplication } from "./application.ts";
import { Listener } from "./listener.ts";

const LIMITS = {
  maxHeaderBytes: 16_384,
  headerTimeoutMs: 600_000,
  bodyTimeoutMs: 600_000,
  idleTimeoutMs: 600_000,
  maxConnections: 10,
};
const COUNT = 400_000;
const HEAD = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
/** Reads of 64 KiB have 10,922 chunks of a byte; the first one may be followed by another. */
const MOST_AT_ONCE = 25_000;

describe.each(["own", "node"] as const)("engine %s", (engine) => {
  it("a body in chunks of one byte is read in turns with other connections", async () => {
    let most = 0;
    let thisTurn = 0;
    let total = 0;
    const ended = Promise.withResolvers<void>();
    const application: HttpApplication = {
      requestId: () => "1",
      handle({ body }, response) {
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
          response.end();
        });
      },
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
    socket.resume().write(`${HEAD}${"1\r\na\r\n".repeat(COUNT)}0\r\n\r\n`);
    await ended.promise;
    expect(total).toBe(COUNT);
    expect(most).toBeLessThan(MOST_AT_ONCE);
  });
});
