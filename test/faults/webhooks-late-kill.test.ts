/** A process is killed after it answered 202: the next process handles the delivery once. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openHeldReceiver } from "../support/held-receiver.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { eventIds, sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

const MODULE = join(import.meta.dirname, "../fixtures/webhook-agents.ts");

it("kill -9 after a 202 loses no delivery and stores none twice", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-late-kill-"));
  const receiver = await openHeldReceiver();
  const config = join(folder, "signalbox.config.json");
  await writeFile(
    config,
    JSON.stringify(
      patiently({
        agents: { modules: [MODULE] },
        outgoing: { allowPrivateHosts: true },
        webhooks: { answerWithinMs: 4000, sources: { obey: { scheme: "generic", agent: "obedient-agent" } } },
      }),
    ),
  );
  const start = () =>
    startServerProcess(["--data-dir", join(folder, "data"), "--config", config, "--log-level", "error"], {
      env: { OBEY_WEBHOOK_SECRET: SECRET, OUT_SECRET: SECRET, SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    });
  let server = await start();
  const read = async (path: string) => (await sendRequest(server, "GET", path)).body.result;
  try {
    // The first delivery of each entity is in its handler when the process is killed; the second one waits.
    const sent = ["a", "b", "c"].flatMap((entity) => ["1", "2"].map((id) => ({ entity, id })));
    const send = ({ entity, id }: { entity: string; id: string }) =>
      sendGeneric(server.url, `obey/late-${entity}`, { id, type: "t", do: "send", url: receiver.url });
    const repeat = async (delivery: (typeof sent)[number]) => {
      for (;;) {
        // As every sender does: 503 says that the server was too slow to store the delivery, which has had no effect.
        const { status } = await send(delivery);
        if (status !== 503) return status;
      }
    };
    expect(await Promise.all(sent.map(repeat))).toEqual(sent.map(() => 202));
    await server.end("SIGKILL");
    server = await start();
    // Only reads from here on.
    receiver.release();
    await expect.poll(() => read("/accounts/default/webhooks/late-deliveries")).toEqual([]);
    for (const entity of ["a", "b", "c"]) {
      expect((await eventIds(server, `late-${entity}`, "obedient-agent")).sort()).toEqual(["1", "2"]);
      const { state } = await read(`/accounts/default/agents/obedient-agent/instances/late-${entity}`);
      expect(state.eventCount).toBe(2);
    }
    expect((await Promise.all(sent.map(send))).map(({ body }) => body)).toEqual(
      sent.map(() => ({ status: "duplicate" })),
    );
  } finally {
    receiver.close();
    await server.end("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
});
