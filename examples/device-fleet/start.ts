/**
 * Starts Signalbox and three simulated devices, of which one stops to report. Ctrl-C ends all.
 *
 *   --port <n>          port of the page; default 5173, 0 selects a free port
 *   --service-port <n>  port of Signalbox; default: a free port
 *   --data-dir <d>      data folder of Signalbox; default .signalbox
 *   --no-samples        simulates no device; DEVICES_WEBHOOK_SECRET verifies the reports of your own
 */
import { spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { build, preview } from "vite";

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

const secret = process.env["DEVICES_WEBHOOK_SECRET"] ?? randomBytes(20).toString("hex");
const args = ["serve", "--json", "--port", flags["service-port"], "--data-dir", flags["data-dir"]];
const signalbox = spawn("signalbox", args, {
  cwd: import.meta.dirname,
  stdio: ["ignore", "pipe", "inherit"],
  env: { SIGNALBOX_LOG_LEVEL: "warn", ...process.env, DEVICES_WEBHOOK_SECRET: secret },
});
const exited = once(signalbox, "exit");
// Without the service there is nothing to wait for.
void exited.then(() => stop.abort());
// Signalbox must end with this process in all cases; Vite exits the process on SIGTERM.
process.once("exit", () => signalbox.kill("SIGTERM"));
const [line] = (await Promise.race([
  once(createInterface(signalbox.stdout), "line"),
  exited.then(() => Promise.reject(new Error("Signalbox did not start"))),
])) as [string];
const { url } = JSON.parse(line) as { url: string };

// The page has a server of its own, which forwards `/agents` to Signalbox: a page with scripts is not an answer of an agent. The page is built
// first, because Vite's development server would also hand out the files of the data folder.
const site = { root: import.meta.dirname, configFile: false, logLevel: "silent" } as const;
await build(site);
const page = await preview({
  ...site,
  preview: {
    host: "127.0.0.1",
    port: Number(flags.port),
    proxy: { "/agents": { target: url, ws: true } },
  },
});

async function report(device: string): Promise<void> {
  const body = JSON.stringify({ device, temperature: Math.round(180 + Math.random() * 60) / 10 });
  const response = await fetch(`${url}/webhooks/devices`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    },
    body,
  });
  if (!response.ok) throw new Error(`the report was refused: ${response.status} ${await response.text()}`);
}

try {
  for (let round = 0; !stop.signal.aborted; round += 1) {
    // The oven stops after its first report, and is silent a minute later.
    const devices = round === 0 ? ["boiler", "fridge", "oven"] : ["boiler", "fridge"];
    if (!flags["no-samples"]) for (const device of devices) await report(device);
    // The first report creates the fleet; a page that may only read cannot.
    if (round === 0)
      console.log(`Open ${page.resolvedUrls?.local[0]}\nReports go to ${url}/webhooks/devices`);
    await sleep(5000, undefined, { signal: stop.signal });
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await page.close();
  signalbox.kill("SIGTERM");
  await exited;
}
