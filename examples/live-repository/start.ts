/**
 * Starts Signalbox, the page, and a sender of sample events. Ctrl-C ends all three.
 *
 *   --port <n>      port of the page; default 5173, 0 selects a free port
 *   --data-dir <d>  data folder of Signalbox; default .signalbox
 *   --no-samples    sends no samples; deliveries to /webhooks/github are verified with GITHUB_WEBHOOK_SECRET
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SignalboxClient } from "@signalbox/client";
import { createServer } from "vite";
import { deliver, sampleEvent } from "./sample-events.ts";

const { values: flags } = parseArgs({
  options: {
    port: { type: "string", default: "5173" },
    "data-dir": { type: "string", default: ".signalbox" },
    "no-samples": { type: "boolean", default: false },
  },
});
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

const webhookSecret = process.env["GITHUB_WEBHOOK_SECRET"] ?? randomBytes(20).toString("hex");
const rootToken = process.env["SIGNALBOX_ROOT_TOKEN"] ?? randomBytes(20).toString("hex");

const signalbox = spawn("signalbox", ["serve", "--json", "--port", "0", "--data-dir", flags["data-dir"]], {
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
const page = await createServer({
  root: import.meta.dirname,
  configFile: false,
  logLevel: "warn",
  server: {
    host: "127.0.0.1",
    port: Number(flags.port),
    proxy: { "/agents": { target: url, ws: true, headers: { authorization: `Bearer ${token}` } } },
  },
});
await page.listen();
const address = page.httpServer?.address();
const port = typeof address === "object" && address !== null ? address.port : flags.port;
console.log(`Open http://127.0.0.1:${port}/`);
console.log(`Deliveries go to ${url}/webhooks/github`);

try {
  while (!stop.signal.aborted) {
    if (!flags["no-samples"]) await deliver(url, webhookSecret, sampleEvent());
    await sleep(2000, undefined, { signal: stop.signal });
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await page.close();
  signalbox.kill("SIGTERM");
  await exited;
}
