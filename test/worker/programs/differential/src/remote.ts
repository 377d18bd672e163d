/** Calls between objects: values, errors, targets, functions, streams, requests, ids. */
import { DurableObject, RpcTarget } from "cloudflare:workers";
import { Notes, show } from "./show";

class Account extends RpcTarget {
  #balance: number;
  label = "an own property";

  constructor(balance: number) {
    super();
    this.#balance = balance;
  }

  get balance() {
    return this.#balance;
  }

  add(amount: number) {
    this.#balance += amount;
    return this.#balance;
  }

  child() {
    return new Account(this.#balance * 2);
  }

  fail() {
    throw new TypeError("of the target");
  }
}

class CustomError extends Error {
  name = "CustomError";
  detail = { code: 7 };
}

class Point {
  constructor(readonly x: number) {}
}

export class Remote extends DurableObject {
  field = "own property";

  get getter() {
    return { from: "getter" };
  }

  echo(...values: unknown[]) {
    return values.length === 1 ? values[0] : values;
  }

  shown(...values: unknown[]) {
    return values.map(show);
  }

  account(balance: number) {
    return new Account(balance);
  }

  nested() {
    return { list: [new Account(1)], plain: 2, double: (n: number) => n * 2 };
  }

  async use(callback: (value: number) => unknown) {
    return ["result", await callback(20)];
  }

  throwing(kind: string) {
    switch (kind) {
      case "range":
        throw new RangeError("out of range");
      case "custom":
        throw new CustomError("of my own");
      case "cause":
        throw new Error("outer", { cause: new Error("inner") });
      case "text":
        throw "only text";
      case "object":
        throw { code: 1 };
      case "undefined":
        throw undefined;
      case "dom":
        throw new DOMException("stopped", "AbortError");
      case "empty":
        throw new Error();
      case "aggregate":
        throw new AggregateError([new Error("a")], "several");
      default:
        return Promise.reject(new SyntaxError("rejected"));
    }
  }

  unserializable(kind: string) {
    return kind === "instance" ? new Point(1) : kind === "symbol" ? Symbol("x") : new WeakMap();
  }

  stream(count: number) {
    let i = 0;
    return new ReadableStream({
      type: "bytes",
      pull(controller) {
        i += 1;
        controller.enqueue(new TextEncoder().encode(`piece ${i};`));
        if (i === count) controller.close();
      },
    });
  }

  async readStream(stream: ReadableStream) {
    return new Response(stream).text();
  }

  response() {
    return Response.json({ a: 1 }, { status: 201, headers: { "x-own": "yes" } });
  }

  async request(request: Request) {
    return [request.method, request.url, request.headers.get("x-sent"), await request.text()];
  }

  disposable(value: object) {
    return typeof value[Symbol.dispose];
  }

  identity() {
    return [this.ctx.id.name, this.ctx.id.toString().length];
  }

  async fetch(request: Request) {
    const { pathname } = new URL(request.url);
    switch (pathname) {
      case "/throw":
        throw new RangeError("in fetch");
      case "/nothing":
        return undefined;
      case "/text":
        return "not a response";
      case "/redirect":
        return Response.redirect("https://example.com/there", 302);
      case "/stream":
        return new Response(this.stream(3));
      case "/empty":
        return new Response(null, { status: 204 });
      case "/error":
        return new Response("teapot", { status: 418, statusText: "short and stout" });
      case "/cookies":
        return new Response("", {
          headers: [
            ["set-cookie", "a=1"],
            ["set-cookie", "b=2"],
            ["x-list", "1"],
            ["x-list", "2"],
          ],
        });
      default:
        return Response.json([
          request.method,
          request.url,
          [...request.headers].filter(([name]) => name.startsWith("x-")),
          await request.text(),
        ]);
    }
  }
}

export async function remoteCases(env): Promise<unknown> {
  const notes = new Notes();
  const stub = env.Remote.getByName("remote");
  const values = {
    text: "é😀",
    number: 1.5,
    minusZero: -0,
    bigint: 2n ** 80n,
    undefined: undefined,
    null: null,
    date: new Date(7),
    pattern: /a/g,
    map: new Map([[{ a: 1 }, new Set([2])]]),
    buffer: new Uint8Array([1, 2]).buffer,
    view: new Uint16Array([1, 2]),
    error: new RangeError("a value"),
    custom: new CustomError("a custom value"),
    "object without prototype": Object.assign(Object.create(null), { a: 1 }),
    sparse: [1, , 3],
  };
  for (const [name, value] of Object.entries(values)) {
    await notes.note(`there ${name}`, () => stub.shown(value));
    await notes.note(`back ${name}`, () => stub.echo(value));
  }
  await notes.note("a class instance", () => stub.shown(new Point(1)));
  await notes.note("a symbol", () => stub.shown(Symbol("x")));
  await notes.note("a weak map", () => stub.shown(new WeakMap()));
  for (const kind of ["instance", "symbol", "weak"])
    await notes.note(`result ${kind}`, () => stub.unserializable(kind));
  for (const kind of [
    "range",
    "custom",
    "cause",
    "text",
    "object",
    "undefined",
    "dom",
    "empty",
    "aggregate",
    "rejected",
  ])
    await notes.note(`error ${kind}`, () => stub.throwing(kind));
  await notes.note("a missing method", () => stub.missing());
  await notes.note("a missing property", () => stub.missing);
  await notes.note("an own property", () => stub.field);
  await notes.note("a getter", () => stub.getter);
  await notes.note("inside a getter", () => stub.getter.from);
  await notes.note("a method of Object", () => stub.hasOwnProperty("x"));
  await notes.note("the constructor", () => stub.constructor);
  await notes.note("ctx", () => stub.ctx);
  await notes.note("an argument that changes later", async () => {
    const value = { a: 1 };
    const call = stub.echo(value);
    value.a = 2;
    return call;
  });
  await notes.note("a target", async () => {
    using account = await stub.account(5);
    return [await account.add(2), await account.balance, await account.child().add(1)];
  });
  await notes.note("a pipelined call", () => stub.account(1).add(2));
  await notes.note("own properties of a target", async () => (await stub.account(1)).label);
  await notes.note("a target's error", async () => (await stub.account(1)).fail());
  await notes.note("a target's missing method", async () => (await stub.account(1)).missing());
  await notes.note("a target inside a value", async () => {
    const { list, plain, double } = await stub.nested();
    return [await list[0].add(1), plain, await double(4)];
  });
  await notes.note("results that can be disposed", async () => {
    const kinds: Record<string, unknown> = {
      object: {},
      list: [],
      text: "x",
      date: new Date(1),
      map: new Map(),
    };
    const found: unknown[] = [];
    for (const [kind, value] of Object.entries(kinds)) {
      const result = await stub.echo(value);
      found.push([kind, typeof result[Symbol.dispose], Object.keys(result).length]);
    }
    return found;
  });
  await notes.note("stubs of a result after its dispose", async () => {
    const result = await stub.nested();
    result[Symbol.dispose]();
    return [result.plain, await result.double(1)];
  });
  await notes.note("a duplicate after the dispose of a result", async () => {
    const result = await stub.nested();
    const kept = result.list[0].dup();
    result[Symbol.dispose]();
    return kept.add(1);
  });
  await notes.note("an argument that can be disposed", () => stub.disposable({ a: 1 }));
  await notes.note("a callback", () => stub.use((value) => value + 1));
  await notes.note("a callback that throws", () =>
    stub.use(() => {
      throw new RangeError("of the callback");
    }),
  );
  await notes.note("a target as argument", async () => show(typeof (await stub.echo(new Account(3))).add));
  await notes.note("after dispose", async () => {
    const account = await stub.account(1);
    account[Symbol.dispose]();
    return account.add(1);
  });
  await notes.note("a stream", async () => new Response(await stub.stream(3)).text());
  await notes.note("a stream as argument", () => stub.readStream(new Response("sent").body));
  await notes.note("a response", async () => {
    const response = await stub.response();
    return [response.status, response.headers.get("x-own"), await response.json()];
  });
  await notes.note("a request as argument", () =>
    stub.request(
      new Request("https://example.com/p", { method: "PUT", body: "body", headers: { "x-sent": "1" } }),
    ),
  );
  const fetched = async (path: string, init?: RequestInit) => {
    const response = await stub.fetch(`https://example.com${path}`, { redirect: "manual", ...init });
    const headers = [...response.headers].filter(([name]) => /^(x-|set-cookie|location)/.test(name));
    return [response.status, headers, await response.text()];
  };
  for (const path of ["/throw", "/nothing", "/text", "/redirect", "/stream", "/empty", "/error", "/cookies"])
    await notes.note(`fetch ${path}`, () => fetched(path));
  await notes.note("fetch with a body", () =>
    fetched("/echo?q=1", { method: "POST", body: "sent", headers: { "x-a": "1", "X-B": "2" } }),
  );
  await notes.note("fetch a stream", () =>
    fetched("/echo", { method: "POST", body: new Response("streamed").body }),
  );
  await notes.note("status text", async () => {
    const texts = await Promise.all(
      ["/empty", "/error", "/echo"].map((path) => stub.fetch(`https://example.com${path}`)),
    );
    return texts.map(({ statusText }) => statusText);
  });
  await notes.note("fetch a relative address", () => stub.fetch("/relative"));
  await notes.note("fetch without a handler", () => env.Plain.getByName("x").fetch("https://example.com/"));
  await notes.note("setAlarm without a handler", () => env.Plain.getByName("x").setAlarm());
  await idCases(env, notes);
  return notes.steps;
}

async function idCases(env, notes: Notes): Promise<void> {
  const space = env.Remote;
  const named = space.idFromName("a name");
  const unique = space.newUniqueId();
  await notes.note("ids of a name are equal", () => [
    named.equals(space.idFromName("a name")),
    `${named}` === `${space.idFromName("a name")}`,
  ]);
  await notes.note("ids of other names are not", () => named.equals(space.idFromName("another")));
  await notes.note("names of ids", () => [named.name, unique.name, "name" in unique]);
  await notes.note("the form of ids", () => [
    /^[0-9a-f]{64}$/.test(`${named}`),
    /^[0-9a-f]{64}$/.test(`${unique}`),
  ]);
  await notes.note("an id of its text", () => [
    space.idFromString(`${named}`).equals(named),
    space.idFromString(`${named}`).name,
  ]);
  await notes.note("an id of another class", () => space.idFromString(`${env.Plain.idFromName("a name")}`));
  await notes.note("a wrong id", () => space.idFromString("0".repeat(64)));
  await notes.note("a short id", () => space.idFromString("abc"));
  await notes.note("get by an id of another class", () => space.get(env.Plain.idFromName("x")) && "a stub");
  await notes.note("get by text", () => space.get("x"));
  await notes.note("an empty name", () => space.getByName("").identity());
  await notes.note("members of a stub", () => {
    const stub = space.get(named);
    return [stub.id.equals(named), stub.name, space.get(unique).name];
  });
  await notes.note("inside, by name", () => space.getByName("inner").identity());
  await notes.note("inside, by id", () => space.get(unique).identity());
  await notes.note("inside, by the text of a name's id", () =>
    space.get(space.idFromString(`${space.idFromName("never called")}`)).identity(),
  );
  await notes.note("a name of odd letters", () => space.getByName("é/😀 \u0000%").identity());
  await notes.note("tags", () =>
    [named, space, space.get(named)].map((value) => Object.prototype.toString.call(value)),
  );
  await notes.note("jurisdiction", () =>
    /^[0-9a-f]{64}$/.test(`${space.jurisdiction("eu").idFromName("x")}`),
  );
}
