/** The process is killed while it sends the notice of an alert. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { sendJson, startProvider } from "../peers/provider.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";
import { waitUntil } from "../support/wait-until.ts";

const ALERTS = "/accounts/default/alerts";
const CLOCK = pathToFileURL(join(import.meta.dirname, "../support/clock-preload.ts")).href;

it("an alert that fired before `kill -9` is sent again with its id, stays firing, and fires no second time", async () => {
  const provider = await startProvider((_, response) => sendJson(response, 500, {}));
  // Hangs until the sender is killed.
  const receiver = await startProvider(() => undefined);
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-alerts-kill-"));
  const config = join(dataDir, "config.json");
  await writeFile(
    config,
    JSON.stringify(
      patiently({
        providers: { openai: { baseUrl: provider.url } },
        outgoing: { allowPrivateHosts: true },
        alerts: { checkIntervalMs: 50 },
      }),
    ),
  );
  const start = (aheadMs: number) =>
    startServerProcess(["--data-dir", dataDir, "--config", config], {
      env: {
        SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
        NODE_OPTIONS: `--import ${CLOCK}`,
        SIGNALBOX_TEST_CLOCK_MS: String(aheadMs),
      },
    });
  const server = await start(0);
  const { result } = (
    await sendRequest(server, "POST", ALERTS, {
      name: "Errors",
      metric: "error_rate",
      threshold: 0.5,
      window: 86_400,
      min_calls: 1,
      receivers: [{ type: "webhook", url: `${receiver.url}/hook` }],
    })
  ).body as { result: { id: string } };
  await fetch(`${server.url}/v1/default/default/openai/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer sk", "content-type": "application/json" },
    body: '{"model":"gpt-4o-mini","messages":[]}',
  }).then((response) => response.arrayBuffer());
  const arrived = (count: number) =>
    waitUntil(
      () => receiver.requests,
      (all) => all.length >= count,
    );
  const [first] = await arrived(1);
  await server.end("SIGKILL");

  receiver.answer = (_, response) => sendJson(response, 200, {});
  // After the time that the attempt had.
  const next = await start(60_000);
  const all = await arrived(2);
  expect(all[1]?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
  expect(all[1]?.body).toBe(first?.body);
  const read = async (path: string) => (await sendRequest(next, "GET", path)).body.result;
  const notices = await waitUntil(
    async () => (await read(`${ALERTS}/${result.id}/notices`)) as { delivered_at: string | null }[],
    ([notice]) => notice?.delivered_at !== null,
  );
  expect(notices).toMatchObject([{ kind: "firing", attempts: 2 }]);
  expect(await read(`${ALERTS}/${result.id}`)).toMatchObject({ status: "firing" });
  await next.end("SIGTERM");
  expect(receiver.requests).toHaveLength(2);
  await provider.close();
  await receiver.close();
  await rm(dataDir, { recursive: true, force: true });
});
