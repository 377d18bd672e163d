/** The process is killed while it copies calls to the bucket: every call is in an object that a manifest names. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { S3_KEY_ID, S3_SECRET, type S3Peer, startS3 } from "../peers/s3.ts";
import { patiently } from "../support/patience.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { callEcho, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

let s3: S3Peer;
let dataDir: string;
beforeAll(async () => {
  s3 = await startS3();
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-push-"));
  const logPush = {
    endpoint: s3.url,
    bucket: "calls",
    region: "eu-test-1",
    accessKeyId: "PUSH_ID",
    secretAccessKey: "PUSH_SECRET",
  };
  await writeFile(join(dataDir, "push.json"), JSON.stringify(patiently({ gateway: { logPush } })));
});
afterAll(async () => {
  await s3.close();
  await rm(dataDir, { recursive: true, force: true });
});

const start = () =>
  startServerProcess(["--data-dir", dataDir, "--config", join(dataDir, "push.json")], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN, PUSH_ID: S3_KEY_ID, PUSH_SECRET: S3_SECRET },
  });
const makeCall = async (server: ServerProcess) => (await callEcho(server)).headers.get("gw-aig-log-id") ?? "";
const push = (server: ServerProcess) => sendRequest(server, "POST", "/log_push/run");

/** Ids in the objects that manifests name, sorted. */
function copied(): string[] {
  const manifests = [...s3.objects].filter(([key]) => key.includes("/manifests/"));
  const keys = manifests.flatMap(([, text]) =>
    (JSON.parse(String(text)) as { objects: { key: string }[] }).objects.map(({ key }) => key),
  );
  return keys
    .flatMap((key) =>
      zstdDecompressSync(s3.objects.get(key) ?? Buffer.alloc(0))
        .toString()
        .trimEnd()
        .split("\n"),
    )
    .map((line) => (JSON.parse(line) as { id: string }).id)
    .toSorted();
}

it("no call is lost by `kill -9` before the object, the manifest or the position is stored", async () => {
  let server = await start();
  const ids: string[] = [];
  // The kill comes while the request is on its way; `after` lets the bucket store it first.
  for (const { part, after } of [
    { part: ".ndjson.zst", after: false },
    { part: "/manifests/", after: false },
    { part: "/manifests/", after: true },
  ]) {
    ids.push(await makeCall(server), await makeCall(server));
    const victim = server;
    s3.refuse = (key) => {
      if (!key.includes(part)) return null;
      victim.child.kill("SIGKILL");
      return after ? null : 503;
    };
    await push(victim).catch(() => null);
    await victim.kill();
    s3.refuse = () => null;
    server = await start();
    ids.push(await makeCall(server));
    expect((await push(server)).status).toBe(200);
    expect([...new Set(copied())]).toEqual(ids.toSorted());
  }
  expect((await push(server)).body.result).toEqual({ calls: 0 });
  await server.end("SIGTERM");
});
