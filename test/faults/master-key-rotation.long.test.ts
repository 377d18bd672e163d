/** The process is killed while the master key of the stored provider keys is rotated. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { sendJson, startProvider } from "../peers/provider.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";

const PATH = "/accounts/default/ai-gateway/gateways/default/provider_configs";
const KEYS = 40;
const ROUNDS = 4;

it("every stored key can be used after `kill -9` during rotations, and old master keys disappear", async () => {
  const provider = await startProvider((_, response) => sendJson(response, 200, {}));
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-master-"));
  const config = join(dataDir, "signalbox.config.json");
  await writeFile(config, JSON.stringify(patiently({ providers: { openai: { baseUrl: provider.url } } })));
  const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
  const start = () => startServerProcess(["--data-dir", dataDir, "--config", config], { env });
  const keysOf = async () => (await readFile(join(dataDir, "master-key"), "utf8")).trim().split("\n");

  let server = await start();
  for (let i = 0; i < KEYS; i++) {
    const body = { provider_slug: "openai", alias: `k${i}`, secret: `sk-number-${i}` };
    expect((await sendRequest(server, "POST", PATH, body)).status).toBe(200);
  }
  const [original] = await keysOf();
  for (let round = 0; round < ROUNDS; round++) {
    const rotations = Array.from({ length: 5 }, () =>
      sendRequest(server, "POST", "/provider_keys/rotate_master").catch(() => null),
    );
    // Each round is killed at another point: when the first, the second, … rotation has been answered.
    await Promise.all(rotations.slice(0, round % 5));
    await server.end("SIGKILL");
    await Promise.all(rotations);
    server = await start();
    provider.requests.length = 0;
    for (let i = 0; i < KEYS; i += 7) {
      const answer = await fetch(`${server.url}/v1/default/default/openai/chat/completions`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "gw-aig-authorization": `Bearer ${ROOT_TOKEN}`,
          "gw-aig-byok-alias": `k${i}`,
        },
        body: JSON.stringify({ model: "m", messages: [] }),
      });
      expect([round, i, answer.status]).toEqual([round, i, 200]);
      expect(provider.requests.at(-1)?.headers.authorization).toBe(`Bearer sk-number-${i}`);
    }
  }
  const last = await sendRequest(server, "POST", "/provider_keys/rotate_master");
  expect(last.body.result).toEqual({ rotated: KEYS, unreadable: 0 });
  const keys = await keysOf();
  expect(keys).toHaveLength(1);
  expect(keys[0]).not.toBe(original);
  await server.end("SIGTERM");
  await provider.close();
  await rm(dataDir, { recursive: true, force: true });
});
