/** A process is killed after it answered 202: the next process handles the delivery once. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startServerProcess } from "../support/server-process.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

const ROOT_TOKEN = "root-token-of-the-fault-test";
const MODULE = join(import.meta.dirname, "../fixtures/webhook-agents.ts");

it("kill -9 after a 202 loses no delivery and stores none twice", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-late-kill-"));
  let open = () => {};
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  const gate = createServer((_request, response) => void isOpen.then(() => response.end()));
  await new Promise<void>((resolve) => gate.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(gate.address() as AddressInfo).port}/`;
  const config = join(folder, "signalbox.config.json");
  await writeFile(
    config,
    JSON.stringify({
      agents: { modules: [MODULE] },
      outgoing: { allowPrivateHosts: true },
      webhooks: { answerWithinMs: 4000, sources: { obey: { scheme: "generic", agent: "obedient-agent" } } },
    }),
  );
  const start = () =>
    startServerProcess(["--data-dir", join(folder, "data"), "--config", config, "--log-level", "error"], {
      env: { OBEY_WEBHOOK_SECRET: SECRET, OUT_SECRET: SECRET, SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    });
  let server = await start();
  const call = async (method: string, path: string) => {
    const response = await fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    return ((await response.json()) as { result: unknown }).result;
  };
  try {
    // The first delivery of each entity is in its handler when the process is killed; the second one waits.
    const sent = ["a", "b", "c"].flatMap((entity) => ["1", "2"].map((id) => ({ entity, id })));
    const send = ({ entity, id }: { entity: string; id: string }) =>
      sendGeneric(server.url, `obey/late-${entity}`, { id, type: "t", do: "send", url });
    expect((await Promise.all(sent.map(send))).map(({ status }) => status)).toEqual(sent.map(() => 202));
    await server.end("SIGKILL");
    server = await start();
    // Only reads from here on.
    open();
    await expect
      .poll(() => call("GET", "/accounts/default/webhooks/late-deliveries"), { timeout: 20_000 })
      .toEqual([]);
    for (const entity of ["a", "b", "c"]) {
      const events = (await call("POST", `/agents/obedient-agent/late-${entity}/rpc/getEvents`)) as {
        id: string;
      }[];
      expect(events.map(({ id }) => id).sort()).toEqual(["1", "2"]);
      const { state } = (await call(
        "GET",
        `/accounts/default/agents/obedient-agent/instances/late-${entity}`,
      )) as {
        state: { eventCount: number };
      };
      expect(state.eventCount).toBe(2);
    }
    expect((await Promise.all(sent.map(send))).map(({ body }) => body)).toEqual(
      sent.map(() => ({ status: "duplicate" })),
    );
  } finally {
    open();
    gate.close();
    await server.end("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
});
