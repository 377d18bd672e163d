/** Stored calls are copied to S3-compatible storage: signed, at least once, with a manifest. */
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { S3_KEY_ID, S3_SECRET, type S3Peer, startS3 } from "../peers/s3.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let s3: S3Peer;
let server: TestServer;
let dataDir: string;

function start(secret = S3_SECRET): Promise<TestServer> {
  return startTestServer({
    dataDir,
    environment: { PUSH_ID: S3_KEY_ID, PUSH_SECRET: secret },
    file: {
      gateway: {
        logPush: {
          endpoint: s3.url,
          bucket: "calls",
          region: "eu-test-1",
          prefix: "logs/one",
          // The service's own runs, at full intervals, would take calls from those of the tests.
          intervalMinutes: 1440,
          accessKeyId: "PUSH_ID",
          secretAccessKey: "PUSH_SECRET",
        },
      },
    },
  });
}

beforeAll(async () => {
  s3 = await startS3();
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-push-"));
  server = await start();
});
afterAll(async () => {
  await server.stop();
  await s3.close();
  await rm(dataDir, { recursive: true, force: true });
});

async function call(text: string, account = "default"): Promise<void> {
  const response = await fetch(`${server.url}/v1/${account}/default/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: text }] }),
  });
  await response.text();
}

const push = () => server.api("POST", "/log_push/run");

/** All prompts in the objects that manifests name, by account. */
function pushed(): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  const manifests = [...s3.objects].filter(([key]) => key.startsWith("logs/one/manifests/"));
  const named = manifests.flatMap(([, text]) =>
    (JSON.parse(String(text)) as { objects: { key: string }[] }).objects.map(({ key }) => key),
  );
  for (const key of named) {
    const bytes = s3.objects.get(key);
    if (bytes === undefined) throw new Error(`${key} is not in the bucket`);
    const [, , account = ""] = key.split("/");
    for (const line of zstdDecompressSync(bytes).toString().trimEnd().split("\n")) {
      const { request } = JSON.parse(line) as { request: string };
      const { messages } = JSON.parse(request) as { messages: { content: string }[] };
      (found[account] ??= []).push(messages[0]?.content ?? "");
    }
  }
  for (const list of Object.values(found)) list.sort();
  return found;
}

it("copies what was stored since the last run, one object per account, and a manifest that describes them", async () => {
  await server.api("POST", "/accounts", { id: "second" });
  await server.api("POST", "/accounts/second/ai-gateway/gateways", { id: "default" });
  await call("one");
  await call("two");
  await call("three", "second");
  expect((await push()).body.result).toEqual({ calls: 3 });
  expect(pushed()).toEqual({ default: ["one", "two"], second: ["three"] });
  const manifests = [...s3.objects].filter(([key]) => key.startsWith("logs/one/manifests/"));
  expect(manifests).toHaveLength(1);
  const { objects } = JSON.parse(String(manifests[0]?.[1])) as {
    objects: { key: string; calls: number; sha256: string }[];
  };
  expect(objects.map(({ calls }) => calls).sort((a, b) => a - b)).toEqual([1, 2]);
  for (const { key, sha256 } of objects) {
    expect(
      createHash("sha256")
        .update(s3.objects.get(key) ?? "")
        .digest("hex"),
    ).toBe(sha256);
  }
  expect((await push()).body.result).toEqual({ calls: 0 });
});

it("a refused manifest repeats the calls, and nothing is lost over a restart", async () => {
  const before = new Set(s3.objects.keys());
  s3.refuse = (key) => (key.includes("/manifests/") ? 503 : null);
  await call("four");
  const failed = await push();
  expect([failed.status, JSON.stringify(failed.body)]).toEqual([
    503,
    expect.stringContaining("status 503") as string,
  ]);
  expect((await server.api("GET", "/log_push")).body.result).toMatchObject({
    enabled: true,
    last_error: expect.stringContaining("503") as string,
  });
  const first = [...s3.objects.keys()].filter((key) => !before.has(key));
  expect(first).toHaveLength(1);
  await server.stop();
  s3.refuse = () => null;
  server = await start();
  await call("five");
  expect((await push()).body.result).toEqual({ calls: 2 });
  // The object without a manifest stays; the next one has its calls and later ones.
  expect([...s3.objects.keys()].filter((key) => !before.has(key) && key.endsWith(".zst"))).toHaveLength(2);
  expect(pushed()["default"]).toEqual(["five", "four", "one", "two"]);
  expect((await server.api("GET", "/log_push")).body.result).toMatchObject({ calls: 5, last_error: null });
});

it("a wrong key is refused by the server, and the calls wait", async () => {
  await server.stop();
  server = await start("wrong-secret-of-the-operator");
  await call("six");
  const failed = await push();
  expect(failed.status).toBe(503);
  expect(JSON.stringify(failed.body)).toContain("SignatureDoesNotMatch");
  expect(JSON.stringify([failed.body, server.logs])).not.toContain("wrong-secret-of-the-operator");
  await server.stop();
  server = await start();
  await push();
  expect(pushed()["default"]).toContain("six");
});

it("is for the operator only", async () => {
  const token = await server.token(["gateway.read", "gateway.edit", "gateway.run"]);
  expect((await server.api("GET", "/log_push", undefined, token)).status).toBe(403);
  expect((await server.api("POST", "/log_push/run", undefined, token)).status).toBe(403);
});
