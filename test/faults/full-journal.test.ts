/**
 * Only the journal's disk is full, because the journal has a file system of its own: deliveries run and cannot be
 * made durable. The same happens for a moment when a disk fills up during a delivery.
 */
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";
import { startServerProcess } from "../support/server-process.ts";
import { openSmallDisk } from "../support/small-disk.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";

const STORAGE_UNAVAILABLE = 7013;

it("senders whose deliveries wait for space are answered in time, and each delivery is kept once when there is space", async () => {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-journal-"));
  const disk = await openSmallDisk(2);
  await mkdir(join(folder, "data/agents"), { recursive: true, mode: 0o700 });
  await symlink(disk.folder, join(folder, "data/agents/journal"));
  const config = join(folder, "signalbox.config.json");
  await writeFile(
    config,
    JSON.stringify(
      patiently({ agents: { journalFileBytes: 64 * 1024 }, webhooks: { answerWithinMs: 1000 } }),
    ),
  );
  const server = await startServerProcess(["--data-dir", join(folder, "data"), "--config", config], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, WEBHOOK_SECRET: SECRET },
    through: disk.through,
    cwd: tmpdir(),
  });
  onTestFinished(async () => {
    await server.kill();
    await disk.drop();
    await rm(folder, { recursive: true, force: true });
  });
  const read = (path: string) => sendRequest(server, "GET", path);
  const ids: string[] = [];
  const deliver = async () => {
    const id = `d${ids.length}`;
    ids.push(id);
    return (await sendGeneric(server.url, "steady", { id, type: "t", pad: "x".repeat(2000) })).status;
  };

  // A busy machine may need longer than senders wait.
  await expect.poll(deliver).toBe(200);
  await disk.fill();
  // Until the journal has used up its preallocated files.
  await expect
    .poll(
      async () => {
        await deliver();
        return (await read("/readyz")).text;
      },
      { interval: 1 },
    )
    .toContain("agents: the disk is full, and the journal waits for room");
  const later = await Promise.all([deliver(), deliver()]);
  for (const status of later) expect(status).toBeOneOf([202, 503]);
  // Writes that are not durable are not shown.
  const shown = await read("/accounts/default/agents/webhook-agent/instances/steady");
  expect([shown.status, shown.text]).toEqual([503, expect.stringContaining(String(STORAGE_UNAVAILABLE))]);

  await disk.makeRoom();
  await expect.poll(async () => (await read("/readyz")).status).toBe(200);
  // Senders that were asked to retry do so; deliveries that have run are duplicates.
  for (const id of ids)
    await expect
      .poll(
        async () =>
          (await sendGeneric(server.url, "steady", { id, type: "t", pad: "x".repeat(2000) })).status,
      )
      .toBe(200);
  await expect
    .poll(async () => JSON.parse((await read("/accounts/default/webhooks/late-deliveries")).text) as unknown)
    .toMatchObject({ result: [] });
  const detail = await read("/accounts/default/agents/webhook-agent/instances/steady");
  expect(JSON.parse(detail.text)).toMatchObject({ result: { state: { eventCount: ids.length } } });
  expect(await server.end("SIGTERM")).toBe(0);
});
