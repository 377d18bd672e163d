import { SignalboxError } from "@signalbox/protocol";
import { expect, test } from "vitest";
import type { Area } from "./area.ts";
import { callArea, type LocalCall } from "./local-call.ts";

const area = (handle: Area["handle"]): Area => ({ name: "x", segments: ["x"], dialect: "gateway", handle });
const CALL: LocalCall = {
  method: "POST",
  target: "/x/a?b=c",
  headers: { "x-a": "1" },
  body: Buffer.from("hello"),
};

test("a call has path, query, headers and body, and its answer is a response", async () => {
  const response = await callArea(
    area(async (request, answer, context) => {
      const body = await context.readBody(100);
      answer.setHeader("x-early", "e");
      answer.writeHead(201, { "x-late": "l" });
      answer.end(
        `${request.method} ${context.path} ${context.query} ${String(request.headers["x-a"])} ${body.toString()}`,
      );
    }),
    "id",
    CALL,
  );
  expect(response.status).toBe(201);
  expect(response.headers.get("x-early")).toBe("e");
  expect(response.headers.get("x-late")).toBe("l");
  expect(await response.text()).toBe("POST /x/a b=c 1 hello");
});

test("an error that the area throws is a response in its dialect", async () => {
  const thrown = await callArea(
    area(() => {
      throw new SignalboxError("gateway_rate_limited");
    }),
    "id",
    CALL,
  );
  expect([thrown.status, ((await thrown.json()) as { internalCode: number }).internalCode]).toEqual([
    429, 2003,
  ]);
  const rejected = await callArea(
    area(() => Promise.reject(new Error("secret"))),
    "id",
    CALL,
  );
  expect(rejected.status).toBe(500);
  expect(await rejected.text()).not.toContain("secret");
});

test("the body arrives at the reader's pace", async () => {
  let written = 0;
  const response = await callArea(
    area((_request, answer) => {
      answer.writeHead(200);
      const write = (): void => {
        while (written < 1000) {
          written += 1;
          if (!answer.write(Buffer.alloc(10_000))) {
            answer.once("drain", write);
            return;
          }
        }
        answer.end();
      };
      write();
    }),
    "id",
    CALL,
  );
  await new Promise(setImmediate);
  expect(written).toBeLessThan(20);
  expect((await response.arrayBuffer()).byteLength).toBe(10_000_000);
});

test("an aborted call and a cancelled body close the response", async () => {
  const closed: string[] = [];
  const endless = (name: string) =>
    area((_request, answer) => {
      answer.once("close", () => closed.push(name));
      answer.writeHead(200);
      answer.write("x");
    });
  const controller = new AbortController();
  const first = await callArea(endless("first"), "id", { ...CALL, signal: controller.signal });
  controller.abort();
  await expect(first.text()).rejects.toThrow();
  const second = await callArea(endless("second"), "id", CALL);
  await second.body?.cancel();
  await new Promise(setImmediate);
  expect(closed).toEqual(["first", "second"]);
  const never = callArea(
    area(() => undefined),
    "id",
    { ...CALL, signal: AbortSignal.timeout(5) },
  );
  await expect(never).rejects.toThrow(/abort|timeout/i);
});
