/**
 * The server is killed while clients write tags: acknowledged writes are there, complete, and the index matches them.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";

const CLIENTS = 16;
const RESOURCES_PER_CLIENT = 3;
const ACKNOWLEDGED = 400;

interface Resource {
  readonly id: string;
  readonly tags: Readonly<Record<string, string>>;
}

it("no acknowledged write is lost, and no two writes are mixed", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-test-"));
  const start = () =>
    startServerProcess(["--data-dir", dataDir], { env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN } });

  const first = await start();
  const acknowledged = new Map<string, number>();
  const attempted = new Map<string, number>();
  let count = 0;
  let killed: Promise<unknown> | undefined;
  const client = async (number: number) => {
    for (let version = 1; killed === undefined; version++) {
      // Each client has its own resources, so that the versions of a resource increase.
      const id = `r${number}-${version % RESOURCES_PER_CLIENT}`;
      const v = String(version);
      attempted.set(id, version);
      const tags = { a: v, b: v, parity: String(version % 2) };
      const body = { resource_type: "worker", resource_id: id, tags };
      const answer = await sendRequest(first, "PUT", "/accounts/default/tags", body).catch(() => null);
      if (answer?.status !== 200) return;
      acknowledged.set(id, version);
      if (++count === ACKNOWLEDGED) killed = first.end("SIGKILL");
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  await killed;

  const second = await start();
  const list = async (filter: string): Promise<Resource[]> =>
    (await sendRequest(second, "GET", `/accounts/default/tags/resources?tag=${filter}`)).body.result;
  const found = new Map((await list("a")).map((resource) => [resource.id, resource.tags]));
  for (const [id, version] of acknowledged) {
    const stored = Number(found.get(id)?.["a"]);
    expect(stored).toBeGreaterThanOrEqual(version);
    expect(stored).toBeLessThanOrEqual(attempted.get(id) ?? 0);
  }
  const byParity = [...(await list("parity=0")), ...(await list("parity=1"))];
  expect(Object.fromEntries(byParity.map((resource) => [resource.id, resource.tags]))).toEqual(
    Object.fromEntries(found),
  );
  for (const tags of found.values())
    expect([tags["b"], tags["parity"]]).toEqual([tags["a"], String(Number(tags["a"]) % 2)]);
  await second.end("SIGTERM");
  await rm(dataDir, { recursive: true });
});
