/** Two workers of one server, on one node or several: what the first one finds at the other. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PROGRAMS, startWorker, type WorkerServer } from "./worker-server.ts";

export function testOtherWorkers(nodes: number): void {
  let server: WorkerServer;
  beforeAll(async () => {
    const args = ["--worker", join(PROGRAMS, "billing/src/server.ts")];
    server = await startWorker("shop/src/server.ts", { args, ...(nodes > 1 ? { nodes } : {}) });
  });
  afterAll(() => server.remove());

  const ask = async (path: string) => (await fetch(server.url + path)).json();

  test("fetch of a service binding has the request, and follows redirects", async () => {
    const answer = await fetch(`${server.url}/some?x=1`, { method: "POST", body: "hello" });
    expect(await answer.json()).toEqual({
      who: "billing",
      method: "POST",
      url: `${server.url}/some?x=1`,
      body: "hello",
    });
  });

  test("entrypoints are called with their props, and pass targets and functions", async () => {
    expect(await ask("/prices")).toEqual({
      of: "3 EUR of billing",
      sum: 6,
      items: ["item 1", "item 2", "item 3"],
      names: expect.arrayContaining(["Account", "Stock", "default"]) as string[],
    });
    expect(await ask("/back")).toBe("ordered tea of shop");
    expect(await ask("/error")).toEqual({ message: "no money", code: "E_MONEY", isType: true });
  });

  test("each worker has its own modules, variables and bindings", async () => {
    expect(await ask("/modules")).toEqual([
      { who: "shop", calls: 1 },
      { who: "shop", calls: 2 },
      { who: "billing", calls: 1 },
    ]);
  });

  test("objects of the other worker are bound by its name, apart from own ones of the same class name", async () => {
    expect(await ask("/people")).toEqual([
      { who: "billing", total: 5 },
      { who: "billing", total: 10 },
      { who: "shop", total: 1 },
      { taken: "pot of shop", exports: ["Account", "Invoice", "Prices", "default"] },
    ]);
  });

  test("workflows of the other worker run with its bindings", async () => {
    const { id } = (await ask("/invoice")) as { id: string };
    await expect
      .poll(() => ask(`/invoice/status?${id}`))
      .toMatchObject({ status: "complete", output: { who: "billing", total: 20 } });
  });

  test("a service of a worker that the server does not have throws by name when it is used", async () => {
    expect(await (await fetch(`${server.url}/absent`)).text()).toContain(
      "binding ABSENT (service of the worker nowhere) is not available on Signalbox",
    );
  });
}
