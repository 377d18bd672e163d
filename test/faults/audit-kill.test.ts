/** The process is killed while settings change: every change that survived is in the audit log, and the chain is intact. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkChain } from "../../packages/signalbox/src/cli/audit-chain.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";

const GATEWAYS = "/accounts/default/ai-gateway/gateways";
const LOG = "/accounts/default/audit_logs";

it("no change survives `kill -9` without its entry", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-audit-"));
  const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
  for (let round = 0; round < 2; round++) {
    const server = await startServerProcess(["--data-dir", dataDir], { env });
    const create = async (i: number) => {
      const answer = await sendRequest(server, "POST", GATEWAYS, { id: `g-${round}-${i}` }).catch(() => null);
      if (i === 20 + 7 * round) void server.end("SIGKILL");
      return answer;
    };
    await Promise.all(Array.from({ length: 45 }, (_, i) => create(i)));
    await server.kill();
  }
  const last = await startServerProcess(["--data-dir", dataDir], { env });
  const gateways = (await sendRequest(last, "GET", `${GATEWAYS}?per_page=100`)).body.result as {
    id: string;
  }[];
  expect(gateways.length).toBeGreaterThan(1);
  const response = await fetch(`${last.url}${LOG}/export`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  const lines = (await response.text()).trimEnd().split("\n");
  const recorded = new Set(
    lines.map((line) => {
      const { resource, request } = JSON.parse(line) as {
        resource: { id: string };
        request: { id?: string } | null;
      };
      // The id of a new resource is in the answer, which a killed process did not give; it is in the request, too.
      return request?.id ?? resource.id;
    }),
  );
  expect(gateways.filter(({ id }) => id !== "default" && !recorded.has(id))).toEqual([]);
  expect((await checkChain(lines, undefined)).problem).toBeNull();
  await last.end("SIGTERM");
  await rm(dataDir, { recursive: true, force: true });
});
