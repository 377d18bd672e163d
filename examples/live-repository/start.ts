/**
 * Starts Signalbox, the page, and a sender of sample events. Ctrl-C ends all three.
 *
 *   --port <n>          port of the page; default 5173, 0 selects a free port
 *   --service-port <n>  port of Signalbox; default: a free port
 *   --data-dir <d>      data folder of Signalbox; default .signalbox
 *   --no-samples        sends no samples; deliveries to /webhooks/github are verified with GITHUB_WEBHOOK_SECRET
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SignalboxClient } from "@signalbox/client";
import { build, preview } from "vite";
import { deliver, sampleEvent } from "./sample-events.ts";

const { values: flags } = parseArgs({
  options: {
    port: { type: "string", default: "5173" },
    "service-port": { type: "string", default: "0" },
    "data-dir": { type: "string", default: ".signalbox" },
    "no-samples": { type: "boolean", default: false },
  },
});
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

const webhookSecret = process.env["GITHUB_WEBHOOK_SECRET"] ?? randomBytes(20).toString("hex");
const rootToken = process.env["SIGNALBOX_ROOT_TOKEN"] ?? randomBytes(20).toString("hex");

const args = ["serve", "--json", "--port", flags["service-port"], "--data-dir", flags["data-dir"]];
const signalbox = spawn("signalbox", args, {
  cwd: import.meta.dirname,
  stdio: ["ignore", "pipe", "inherit"],
  env: {
    ...process.env,
    GITHUB_WEBHOOK_SECRET: webhookSecret,
    SIGNALBOX_ROOT_TOKEN: rootToken,
    SIGNALBOX_LOG_LEVEL: process.env["SIGNALBOX_LOG_LEVEL"] ?? "warn",
  },
});
const exited = once(signalbox, "exit");
// Without the service there is nothing to wait for.
void exited.then(() => stop.abort());
// Signalbox must end with this process in all cases; Vite exits the process on SIGTERM.
process.once("exit", () => signalbox.kill("SIGTERM"));
const firstLine = once(createInterface(signalbox.stdout), "line") as Promise<[string]>;
const [line] = await Promise.race([
  firstLine,
  exited.then(() => Promise.reject(new Error("Signalbox did not start"))),
]);
const { url } = JSON.parse(line) as { url: string };

// A read-only token. The page's server adds it to forwarded requests; the page does not receive it.
const client = new SignalboxClient({ url, token: rootToken });
const { token } = await client.account().tokens.create({
  name: "live-repository example",
  permissions: ["agents.read"],
  expires_at: new Date(Date.now() + 24 * 3600_000).toISOString(),
});
// The page has a server of its own, which forwards `/agents` to Signalbox: a page with scripts is not an answer of an agent. The page is built
// first, because Vite's development server would also hand out the files of the data folder.
const site = { root: import.meta.dirname, configFile: false, logLevel: "silent" } as const;
await build(site);
const page = await preview({
  ...site,
  preview: {
    host: "127.0.0.1",
    port: Number(flags.port),
    proxy: { "/agents": { target: url, ws: true, headers: { authorization: `Bearer ${token}` } } },
  },
});
const deliveries = `${url}/webhooks/github`;
console.log(`Open ${page.resolvedUrls?.local[0]}\nDeliveries go to ${deliveries}`);

try {
  while (!stop.signal.aborted) {
    if (!flags["no-samples"]) await deliver(deliveries, webhookSecret, sampleEvent());
    await sleep(2000, undefined, { signal: stop.signal });
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await page.close();
  signalbox.kill("SIGTERM");
  await exited;
}
