/** The server is killed while calls run under a limit: what the provider billed is in the books of the next process. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { sendJson, startProvider } from "../peers/provider.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const CLIENTS = 8;
const KILLS = 3;
/** Answered calls before each kill: the first comes before amounts reach the database, later ones between writes. */
const ANSWERED = 60;
const GATEWAY = "/accounts/default/ai-gateway/gateways/default";
const BODY = JSON.stringify({ model: "m", max_tokens: 6 });

interface Budget {
  readonly used: number;
  readonly reserved: number;
}

it("no amount that a provider billed is lost, whenever the process is killed", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-test-"));
  const configFile = join(dataDir, "config.json");
  let billed = 0;
  const provider = await startProvider((_, response) => {
    billed += 7;
    sendJson(response, 200, { model: "m", usage: { prompt_tokens: 1, completion_tokens: 6 } });
  });
  await writeFile(
    configFile,
    JSON.stringify(
      patiently({
        providers: { openai: { baseUrl: provider.url } },
        gateway: { prices: { openai: { m: { in: 1_000_000, out: 1_000_000 } } } },
      }),
    ),
  );
  const start = () =>
    startServerProcess(["--data-dir", dataDir, "--config", configFile], {
      env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    });
  const readBudget = async (server: ServerProcess): Promise<Budget> =>
    (await sendRequest(server, "GET", `${GATEWAY}/budgets`)).body.result.budgets[0];

  let answered = 0;
  let server = await start();
  await sendRequest(server, "PUT", GATEWAY, {
    spend_limits: { rules: [{ id: "r", limitType: "cost", limit: 1_000_000, window: null }] },
  });
  for (let kill = 1; kill <= KILLS; kill++) {
    const { url } = server;
    let killed: Promise<unknown> | undefined;
    const client = async () => {
      while (killed === undefined) {
        const answer = await fetch(`${url}/v1/default/default/openai/chat/completions`, {
          method: "POST",
          body: BODY,
          headers: { "content-type": "application/json" },
        }).catch(() => null);
        if (answer?.status !== 200) return;
        await answer.text().catch(() => "");
        answered += 1;
        if (answered >= kill * ANSWERED) killed ??= server.end("SIGKILL");
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    await killed;
    server = await start();
    const { used, reserved } = await readBudget(server);
    expect(used).toBeGreaterThanOrEqual(billed);
    expect(reserved).toBe(0);
    // Calls that were running count with their reservation: 12 tokens of input and 6 of output.
    expect(used).toBeLessThanOrEqual(billed + kill * CLIENTS * 18);
  }
  // A clean stop counts nothing twice.
  const before = await readBudget(server);
  expect(await server.end("SIGTERM")).toBe(0);
  server = await start();
  expect(await readBudget(server)).toEqual(before);
  await server.end("SIGTERM");
  await provider.close();
  await rm(dataDir, { recursive: true, force: true });
});
