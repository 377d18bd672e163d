import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { toResponse } from "./web-message.ts";

const HEAD = { status: 200, statusText: "", headers: [] };

function arriving() {
  const body = new Readable({ read: () => undefined });
  body.on("error", () => undefined);
  return body;
}

const respond = (body: Readable) => toResponse({ head: HEAD, body });

it("small pieces that wait for the reader are one piece", async () => {
  const body = arriving();
  const reader = respond(body).body?.getReader();
  for (let i = 0; i < 1000; i++) body.push("tick\n");
  const first = await reader?.read();
  expect(Buffer.from(first?.value ?? []).toString()).toBe("tick\n".repeat(1000));
  const second = reader?.read();
  body.push("late");
  body.push(null);
  expect(Buffer.from((await second)?.value ?? []).toString()).toBe("late");
  expect((await reader?.read())?.done).toBe(true);
});

it("a body that failed, before or while it is read, does not look complete", async () => {
  const [failed, failing] = [arriving(), arriving()];
  failed.push("half");
  failed.destroy(new Error("broke"));
  await expect(respond(failed).text()).rejects.toThrow("broke");
  const text = respond(failing).text();
  failing.push("half");
  await nextTurn();
  failing.destroy(new Error("broke"));
  await expect(text).rejects.toThrow("broke");
});

it("a reader that goes away ends the body, also before its first read and while it waits", async () => {
  const [unread, waiting] = [arriving(), arriving()];
  await respond(unread).body?.cancel();
  expect(unread.destroyed).toBe(true);
  const reader = respond(waiting).body?.getReader();
  const read = reader?.read();
  await reader?.cancel();
  expect(await read).toEqual({ done: true, value: undefined });
  expect(waiting.destroyed).toBe(true);
});

it("the body of a forgotten response ends", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const body = arriving();
  body.push("never read");
  await (async () => {
    const reader = respond(body).body?.getReader();
    await reader?.read();
  })();
  await expect
    .poll(() => {
      collect();
      return body.destroyed;
    })
    .toBe(true);
});
