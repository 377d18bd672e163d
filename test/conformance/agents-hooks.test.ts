/** Hooks, limits and outgoing requests of agents: interface sections 2.4 and 4.4. */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { spawnCli, startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const MODULE = join(import.meta.dirname, "../fixtures/hook-agents.ts");

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    file: {
      agents: { modules: [MODULE], maxStateBytes: 4096, maxBufferedBytes: 64 * 1024 },
      outgoing: { allowPrivateHosts: true },
    },
  });
});
afterAll(() => server.stop());

const call = (name: string, method: string, ...args: unknown[]) =>
  server.api("POST", `/agents/watcher/${name}/rpc/${method}`, args);
const result = async (name: string, method: string, ...args: unknown[]) =>
  (await call(name, method, ...args)).body.result;

describe("hooks", () => {
  it("onStateChanged runs in the turn that changed the state and receives the source of the change", async () => {
    expect(await result("h1", "set", 5)).toBe("set");
    expect(await result("h1", "lines")).toEqual(["before 5 server", "after 5"]);
    const client = await new RawClient(`${server.url}/agents/watcher/h1?_pk=me`).opened();
    await client.greeted();
    client.send({ type: "cf_agent_state", state: { n: 6 } });
    expect((await client.call("lines")).result.slice(2)).toEqual(["before 6 me", "after 6"]);
    client.close();
  });

  it("a failing onStateChanged keeps the change and calls onError", async () => {
    expect(await result("h2", "set", 13)).toBe("set");
    const lines = await waitUntil(
      () => result("h2", "lines"),
      (all) => all.length === 3,
    );
    expect(lines).toEqual(["before 13 server", "after 13", "error unlucky"]);
  });

  it("onError is called for failed methods", async () => {
    expect((await call("h3", "fail")).status).toBe(500);
    expect(
      await waitUntil(
        () => result("h3", "lines"),
        (all) => all.length > 0,
      ),
    ).toEqual(["error plain failure"]);
  });

  it("shouldConnectionBeReadonly overrides the token, also for frames sent immediately after the handshake", async () => {
    const client = new RawClient(`${server.url}/agents/watcher/h4?_pk=guest-1`);
    await client.opened();
    expect(await client.call("set", 1)).toMatchObject({ success: false, error: "Connection is readonly" });
    client.close();
  });
});

describe("state", () => {
  it("a state over the limit is refused with an error and changes nothing", async () => {
    const answer = await call("s1", "setSize", 5000);
    expect([answer.status, answer.body.errors[0].message]).toEqual([
      500,
      "the state is larger than 4096 bytes",
    ]);
    expect((await call("s1", "setSize", 3000)).status).toBe(200);
  });

  it.each(["cycle", "undefined", "function"])(
    "a state that cannot be serialized as JSON (%s) is refused",
    async (kind) => {
      expect((await call("s2", "setAnything", kind)).body.errors[0].message).toContain(
        "the state is not JSON",
      );
    },
  );

  it("an in-place change of the state by a failed turn is undone", async () => {
    await call("s3", "set", 4);
    await call("s3", "mutateThenFail");
    const client = await new RawClient(`${server.url}/agents/watcher/s3`).opened();
    await client.next((frame) => frame.type === "cf_agent_identity");
    expect(await client.next()).toEqual({ type: "cf_agent_state", state: { n: 4 } });
    client.close();
  });

  it("a result that cannot be serialized as JSON fails the call", async () => {
    expect((await call("s4", "unserialisable")).status).toBe(500);
  });
});

describe("destroy() inside a turn", () => {
  it("the turn is answered, then everything is removed", async () => {
    expect(await result("d1", "end")).toBe("bye");
    await waitUntil(
      () => server.api("GET", "/accounts/default/agents/watcher/instances/d1"),
      (answer) => answer.status === 404,
    );
    expect(await result("d1", "lines")).toEqual([]);
  });
});

describe("outgoing requests", () => {
  const received: { headers: IncomingMessage["headers"]; body: string; method: string }[] = [];
  const receiver = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ headers: request.headers, body, method: request.method ?? "" });
      response.writeHead(request.url === "/fails" ? 503 : 200).end("thanks");
    });
  });
  let url: string;
  beforeAll(async () => {
    receiver.listen(0, "127.0.0.1");
    await once(receiver, "listening");
    url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  });
  afterAll(() => void receiver.close());

  it("webhooks are signed JSON posts", async () => {
    received.length = 0;
    expect(await result("o1", "notify", url, { hello: 1 }, "top secret")).toBe(200);
    expect(received[0]).toMatchObject({ method: "POST", body: '{"hello":1}' });
    expect(received[0]?.headers["x-signature"]).toMatch(/^sha256=[0-9a-f]{64}$/);
  });

  it("a webhook that the receiver refuses throws an error with the status", async () => {
    expect((await call("o2", "notify", `${url}/fails`, {})).body.errors[0].message).toContain("503");
  });

  it("webhooks of a failed turn are not sent", async () => {
    received.length = 0;
    await call("o3", "notifyThenFail", url);
    await result("o3", "notify", url, "after");
    expect(received.map(({ body }) => body)).toEqual(['"after"']);
  });

  it("fetch returns the response", async () => {
    expect(await result("o4", "ask", url)).toBe("thanks");
  });

  it("webhooks to private addresses are refused unless allowed", async () => {
    const strict = await startTestServer({ file: { agents: { modules: [MODULE] } } });
    const answer = await strict.api("POST", "/agents/watcher/x/rpc/notify", [url, {}]);
    expect(answer.status).toBe(500);
    await strict.stop();
  });
});

describe("a slow reader", () => {
  it("a slow reader is disconnected at the buffer limit; other connections receive everything", async () => {
    const [slow, quick] = await Promise.all([
      new RawClient(`${server.url}/agents/watcher/slow?_pk=slow`).opened(),
      new RawClient(`${server.url}/agents/watcher/slow?_pk=quick`).opened(),
    ]);
    await slow.greeted();
    await quick.greeted();
    slow.socket.pause();
    for (let i = 0; i < 40; i++) await call("slow", "flood", 512 * 1024);
    for (let i = 0; i < 40; i++)
      await quick.next((frame) => typeof frame === "string" && frame.length === 512 * 1024);
    const left = await waitUntil(
      async () =>
        (await server.api("GET", "/accounts/default/agents/watcher/instances/slow/connections")).body.result,
      (all) => all.length === 1,
    );
    expect(left[0].id).toBe("quick");
    slow.socket.resume();
    expect([1006, 1013]).toContain(await slow.closed());
    quick.close();
  });
});

describe("server shutdown", () => {
  it("clients are closed with a code that asks them to reconnect, and running turns finish", async () => {
    const own = await startTestServer({ file: { agents: { modules: [MODULE] } } });
    const client = await new RawClient(`${own.url}/agents/watcher/stop`).opened();
    await client.greeted();
    const running = own.api("POST", "/agents/watcher/stop/rpc/set", [1]);
    await client.next((frame) => frame.state?.n === 1);
    const stopped = own.stop();
    expect(await client.closed()).toBe(1012);
    expect((await running).status).toBe(200);
    await stopped;
  });
});

describe("kill -9", () => {
  it("no answered or broadcast change is lost, and no change is partial", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-kill-"));
    const args = ["--data-dir", dataDir, "--agents", MODULE];
    const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
    const first = await startServerProcess(args, { env });
    const client = await new RawClient(`${first.url}/agents/watcher/k`).opened();
    await client.greeted();
    let answered = 0;
    let broadcast = 0;
    client.socket.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString("utf8")) as {
        state?: { n: number };
        id?: string;
        success?: boolean;
      };
      if (frame.state !== undefined) broadcast = Math.max(broadcast, frame.state.n);
      // A slow start refuses calls beyond the limit of 1,000 waiting turns; refused calls change nothing.
      if (frame.success === true) answered = Math.max(answered, Number(frame.id));
    });
    for (let n = 1; n <= 2000; n++) client.send({ type: "rpc", id: String(n), method: "set", args: [n] });
    await waitUntil(
      async () => answered,
      (n) => n > 20,
    );
    await first.end("SIGKILL");
    const second = await startServerProcess(args, { env });
    const again = await new RawClient(`${second.url}/agents/watcher/k`).opened();
    await again.next((frame) => frame.type === "cf_agent_identity");
    const { state } = await again.next((frame) => frame.type === "cf_agent_state");
    expect(state.n).toBeGreaterThanOrEqual(Math.max(answered, broadcast));
    const lines = (await again.call("lines")).result as string[];
    expect(lines.filter((line) => line.startsWith("before"))).toHaveLength(state.n);
    again.close();
    await second.end("SIGTERM");
    await rm(dataDir, { recursive: true, force: true });
  });
});

describe("signalbox dev", () => {
  it("changed agents are loaded again and stored data is kept", async () => {
    const folder = await mkdtemp(join(tmpdir(), "signalbox-dev-"));
    const write = (answer: string) =>
      writeFile(
        join(folder, "agent.ts"),
        `import { Agent, callable } from "signalbox";
         export class Changing extends Agent {
           @callable() answer() { return "${answer}"; }
           @callable() keep() { this.setState({ kept: true }); }
           @callable() read() { return this.state; }
         }`,
      );
    await write("one");
    const dev = spawnCli(["dev", "--json", "--port", "0", "--agents", "agent.ts"], {
      cwd: folder,
      env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    });
    const urls: string[] = [];
    dev.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      for (const line of chunk.split("\n"))
        if (line.startsWith("{")) urls.push((JSON.parse(line) as { url: string }).url);
    });
    const call = async (method: string) => {
      const response = await fetch(`${urls.at(-1)}/agents/changing/x/rpc/${method}?token=${ROOT_TOKEN}`, {
        method: "POST",
      });
      return ((await response.json()) as { result: unknown }).result;
    };
    await waitUntil(
      async () => urls.length,
      (count) => count === 1,
    );
    expect(await call("answer")).toBe("one");
    await call("keep");
    await write("two");
    // A save may cause a second restart after a pause of the machine, and the address of the first one is then gone.
    const answer = await waitUntil(
      () => call("answer").catch(() => "restarting"),
      (text) => urls.length >= 2 && text === "two",
    );
    expect(answer).toBe("two");
    expect(await call("read")).toEqual({ kept: true });
    const ended = once(dev, "exit");
    dev.kill("SIGTERM");
    await ended;
    await rm(folder, { recursive: true, force: true });
  });
});
