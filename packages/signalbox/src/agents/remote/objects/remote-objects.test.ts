/** Calls of objects on another node, over a real link. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { InstanceElsewhereError } from "../../../engines/instance-store/index.ts";
import type { ObjectContext } from "../../objects/object-context.ts";
import { DurableObject, RpcTarget } from "../../objects/workers-module.ts";
import { openTwoNodes, type TwoNodes } from "./two-nodes-fixture.ts";

class Ticker extends RpcTarget {
  readonly #log: string[];
  count = 0;

  constructor(log: string[]) {
    super();
    this.#log = log;
  }

  tick(by = 1): number {
    this.count += by;
    return this.count;
  }

  get own() {
    return { deep: { value: 7, twice: (n: number) => 2 * n } };
  }

  [Symbol.dispose](): void {
    this.#log.push("disposed");
  }
}

const LOG: string[] = [];

class Room extends DurableObject<Record<string, never>> {
  declare readonly ctx: ObjectContext;

  async add(by: number): Promise<number> {
    const count = ((await this.ctx.storage.get("count")) as number | undefined) ?? 0;
    await this.ctx.storage.put("count", count + by);
    return count + by;
  }

  get total(): number {
    return (this.ctx.storage.kv.get("count") as number | undefined) ?? 0;
  }

  echo(value: unknown): unknown {
    return value;
  }

  identity(): [string | undefined, string] {
    return [this.ctx.id.name, this.ctx.id.toString()];
  }

  fail(kind: string): never {
    if (kind === "type") throw new TypeError("refused");
    if (kind === "plain") throw Object.assign({ code: 7 });
    throw Object.assign(new Error("boom"), { name: "OwnError" });
  }

  ticker(): Ticker {
    return new Ticker(LOG);
  }

  async callBack(callback: ((value: unknown) => Promise<unknown>) & Disposable): Promise<unknown> {
    return callback({ from: "room", at: new Date(5) });
  }

  async keep(callback: { dup(): (value: unknown) => Promise<unknown> }): Promise<void> {
    this.kept = callback.dup();
  }

  kept: ((value: unknown) => Promise<unknown>) | null = null;

  fire(value: unknown): Promise<unknown> | undefined {
    return this.kept?.(value);
  }

  async read(stream: ReadableStream<Uint8Array>): Promise<string> {
    return new Response(stream).text();
  }

  count(to: number): ReadableStream {
    let i = 0;
    return new ReadableStream({
      pull(controller) {
        if (i === to) controller.close();
        else controller.enqueue(new TextEncoder().encode(`${i++} `));
      },
      cancel: (reason) => void LOG.push(`cancelled: ${String(reason)}`),
    });
  }

  async write(stream: WritableStream): Promise<void> {
    const writer = stream.getWriter();
    await writer.write("one");
    await writer.write({ two: 2 });
    await writer.close();
  }

  visit(other: { total: Promise<number>; add(by: number): Promise<number> }): Promise<number> {
    return other.add(5);
  }

  abort(): void {
    this.ctx.abort("no more");
  }

  hang(): Promise<void> {
    return new Promise(() => undefined);
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/wait") {
      LOG.push("waiting");
      await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      LOG.push("aborted");
      return new Response("late");
    }
    if (pathname === "/stream")
      return new Response(request.body, { status: 201, statusText: "Made", headers: { "x-a": "1" } });
    const headers = new Headers([
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ]);
    return new Response(`${request.method} ${request.headers.get("x-b")} ${await request.text()}`, {
      headers,
    });
  }
}

let nodes: TwoNodes;
beforeAll(async () => {
  nodes = await openTwoNodes({ Room });
});
afterAll(() => nodes.close());
beforeEach(() => {
  LOG.length = 0;
  nodes.owner = "2";
});

// Members of a stub are typed by programs; tests call what they know.
type Calls = Record<string, (...args: unknown[]) => Promise<unknown>> & {
  fetch: typeof fetch;
  total: Promise<number>;
  ticker(): RemoteTicker & Promise<RemoteTicker>;
};
interface RemoteTicker extends Disposable {
  tick(by?: number): Promise<number>;
  readonly own: { readonly deep: { readonly value: Promise<number> } };
}
const room = (name = "a") => nodes.env["Room"]?.getByName(name) as unknown as Calls;
const call = (method: string, ...args: unknown[]) => room()[method]?.(...args) ?? Promise.reject(new Error());
const countAt = (node: "one" | "two") => [...nodes[node].instances()].length;

test("methods and properties run at the node of the object", async () => {
  expect(await call("add", 2)).toBe(2);
  expect(await call("add", 3)).toBe(5);
  expect(await room().total).toBe(5);
  const [name, id] = (await call("identity")) as [string, string];
  expect(name).toBe("a");
  expect(id).toBe(String(nodes.env["Room"]?.idFromName("a")));
  expect([countAt("one"), countAt("two")]).toEqual([0, 1]);
});

test("values arrive as they do on one node", async () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  const value = {
    date: new Date(1),
    map: new Map<unknown, unknown>([[{ a: 1 }, new Set([1n])]]),
    bytes: new Uint8Array([1, 2, 3]),
    floats: new Float64Array([1.5]),
    buffer: new Uint8Array([9]).buffer,
    view: new DataView(new Uint8Array([4, 5]).buffer),
    pattern: /a/g,
    error: new RangeError("far"),
    nothing: undefined,
    text: "ü",
    cyclic,
  };
  const echoed = (await call("echo", value)) as typeof value;
  expect(echoed).toEqual(value);
  expect(echoed.cyclic.self).toBe(echoed.cyclic);
  expect(echoed.bytes.buffer.byteLength).toBe(3);
  expect(echoed.error).toBeInstanceOf(RangeError);
  expect(await call("echo", Buffer.from("hi"))).toEqual(new Uint8Array(Buffer.from("hi")));
  const url = (await call("echo", new URL("http://a/b?c=1"))) as URL;
  expect(url.href).toBe("http://a/b?c=1");
  const form = new FormData();
  form.append("file", new File(["text"], "a.txt", { type: "text/plain" }));
  const back = (await call("echo", { form, blob: new Blob(["x"]) })) as { form: FormData; blob: Blob };
  expect(await (back.form.get("file") as File).text()).toBe("text");
  expect(await back.blob.text()).toBe("x");
});

test("what cannot leave a process is refused by name, and the object still works", async () => {
  await expect(call("echo", new WeakMap())).rejects.toThrow("#<WeakMap> could not be cloned");
  await expect(call("echo", new TransformStream())).rejects.toMatchObject({ name: "DataCloneError" });
  await expect(call("echo", new Uint8Array(40 * 2 ** 20))).rejects.toThrow("limited to 32MiB");
  expect(await call("echo", 1)).toBe(1);
});

test("errors keep class, name, message and stack", async () => {
  const type = (await call("fail", "type").catch((error: unknown) => error)) as Error;
  expect(type).toBeInstanceOf(TypeError);
  expect(type).toMatchObject({ message: "refused", remote: true });
  expect(type.stack).toContain("Room.fail");
  await expect(call("fail", "own")).rejects.toMatchObject({
    name: "OwnError",
    message: "boom",
    remote: true,
  });
  await expect(call("fail", "plain")).rejects.toMatchObject({ code: 7 });
  await expect(call("missing")).rejects.toThrow('does not implement the method "missing"');
  await expect(call("alarm")).rejects.toThrow("reserved method");
  await expect(call("abort")).rejects.toMatchObject({ message: "no more", durableObjectReset: true });
});

test("functions and targets are called back on the node that they belong to, and disposed", async () => {
  const seen: unknown[] = [];
  const answer = await call("callBack", async (value: unknown) => {
    seen.push(value);
    return { twice: (n: number) => 2 * n };
  });
  expect(seen).toEqual([{ from: "room", at: new Date(5) }]);
  expect(await (answer as { twice(n: number): Promise<number> }).twice(21)).toBe(42);

  const ticker = await room().ticker();
  expect(await ticker.tick(2)).toBe(2);
  expect(await ticker.own.deep.value).toBe(7);
  // Calls on the promise of a call need no further await.
  expect(await room().ticker().tick(9)).toBe(9);
  ticker[Symbol.dispose]();
  await expect.poll(() => LOG).toContain("disposed");
  await expect(ticker.tick()).rejects.toThrow("disposed");
});

test("a kept callback works after its call, and fails when the link is lost", async () => {
  const seen: unknown[] = [];
  await call("keep", (value: unknown) => seen.push(value));
  await call("fire", "later");
  expect(seen).toEqual(["later"]);
});

test("a stub of an object goes to the object, wherever it is", async () => {
  await room("b")["add"]?.(1);
  expect(await call("visit", room("b"))).toBe(6);
  expect(await room("b").total).toBe(6);
});

test("streams are read and written at the pace of the reader", async () => {
  let pulled = 0;
  const endless = new ReadableStream({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new TextEncoder().encode("x".repeat(1000)));
      if (pulled === 50) controller.close();
    },
  });
  expect(((await call("read", endless)) as string).length).toBe(50_000);
  const numbers = (await call("count", 100)) as ReadableStream<Uint8Array>;
  expect(await new Response(numbers).text()).toMatch(/^0 1 .* 99 $/);
  const many = (await call("count", 1e6)) as ReadableStream<Uint8Array>;
  const reader = many.getReader();
  await reader.read();
  await reader.cancel("enough");
  await expect.poll(() => LOG).toContain("cancelled: enough");
  const written: unknown[] = [];
  await call("write", new WritableStream({ write: (piece) => void written.push(piece) }));
  expect(written).toEqual(["one", { two: 2 }]);
});

test("requests and responses keep their heads, bodies and cookies", async () => {
  const plain = await room().fetch("http://x/plain", { method: "PUT", body: "b", headers: { "x-b": "2" } });
  expect(await plain.text()).toBe("PUT 2 b");
  expect(plain.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode("streamed"));
      controller.close();
    },
  });
  const streamed = await room().fetch("http://x/stream", {
    method: "POST",
    body,
    duplex: "half",
  });
  expect([streamed.status, streamed.statusText, streamed.headers.get("x-a")]).toEqual([201, "Made", "1"]);
  expect(await streamed.text()).toBe("streamed");
});

test("an aborted request aborts at the object", async () => {
  const gone = new AbortController();
  const answer = room().fetch("http://x/wait", { signal: gone.signal });
  await expect.poll(() => LOG).toEqual(["waiting"]);
  gone.abort(new Error("the client left"));
  expect(await (await answer).text()).toBe("late");
  expect(LOG).toEqual(["waiting", "aborted"]);
});

test("a call that reaches the wrong node is sent to the right one, with its body and callbacks", async () => {
  const refusing = nodes.two.directory;
  const get = refusing.get.bind(refusing);
  let refusals = 0;
  refusing.get = (() => {
    refusals += 1;
    nodes.owner = "1";
    refusing.get = get;
    return { run: () => Promise.reject(new InstanceElsewhereError("1")) };
  }) as never;
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode("once"));
      controller.close();
    },
  });
  const answer = await room("moved").fetch("http://x/stream", {
    method: "POST",
    body,
    duplex: "half",
  });
  expect(await answer.text()).toBe("once");
  expect(refusals).toBe(1);
});

test("a caller whose node loses the object's node gets an error that may be retried", async () => {
  const lost = await openTwoNodes({ Room });
  try {
    const stub = lost.env["Room"]?.getByName("a") as unknown as Calls;
    const ticker = await stub.ticker();
    const hanging = stub["hang"]?.().catch((error: unknown) => error);
    await lost.cut();
    expect(await hanging).toMatchObject({ message: "Network connection lost.", retryable: true });
    await expect(ticker.tick()).rejects.toThrow("Network connection lost.");
    // What the lost caller held is disposed.
    await expect.poll(() => LOG).toContain("disposed");
  } finally {
    await lost.close();
  }
});

test("a node that stops refuses a call, which runs elsewhere, and ends what others hold of it", async () => {
  const stopping = await openTwoNodes({ Room });
  try {
    const stub = (name: string) => stopping.env["Room"]?.getByName(name) as unknown as Calls;
    const ticker = await stub("a").ticker();
    expect(await ticker.tick()).toBe(1);
    stopping.two.directory.drain();
    const refused = stopping.two.directory.get.bind(stopping.two.directory);
    stopping.two.directory.get = ((...args: Parameters<typeof refused>) => {
      stopping.owner = "1";
      return refused(...args);
    }) as never;
    expect(await stub("b")["add"]?.(3)).toBe(3);
    expect([...stopping.one.instances()]).toHaveLength(1);
    stopping.endSessions();
    await expect(ticker.tick()).rejects.toThrow("Network connection lost.");
    await expect.poll(() => LOG).toContain("disposed");
  } finally {
    await stopping.close();
  }
});
