/**
 * Starts Signalbox and sends sample tickets. Ctrl-C ends both.
 *
 *   --port <n>          port of the page; default 5173, 0 selects a free port
 *   --service-port <n>  port of Signalbox; default: a free port
 *   --data-dir <d>      data folder of Signalbox; default .signalbox
 *   --no-samples        sends no tickets; TICKETS_WEBHOOK_SECRET verifies those of your own help desk
 */
import { spawn } from "node:child_process";
import { createHmac, randomBytes, randomUUID } from "node:crypto";
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

const secret = process.env["TICKETS_WEBHOOK_SECRET"] ?? randomBytes(20).toString("hex");
const args = ["serve", "--json", "--port", flags["service-port"], "--data-dir", flags["data-dir"]];
const signalbox = spawn("signalbox", args, {
  cwd: import.meta.dirname,
  stdio: ["ignore", "pipe", "inherit"],
  env: { SIGNALBOX_LOG_LEVEL: "warn", ...process.env, TICKETS_WEBHOOK_SECRET: secret },
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

const SAMPLES = [
  ["ada@example.com", "Where is my invoice?", "I cannot find the invoice of May."],
  ["grace@example.com", "The export hangs", "The CSV export stops at 99 %."],
  ["linus@example.com", "Please delete my account", "I do not need it any more."],
] as const;

async function sendTicket(count: number): Promise<void> {
  const [from, subject, text] = SAMPLES[count % SAMPLES.length] ?? SAMPLES[0];
  const ticket = { mailbox: "acme", ticket_id: `T-${randomUUID().slice(0, 8)}`, from, subject, text };
  const body = JSON.stringify(ticket);
  const response = await fetch(`${url}/webhooks/tickets`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-signature": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
    },
    body,
  });
  if (!response.ok) throw new Error(`the ticket was refused: ${response.status} ${await response.text()}`);
}

try {
  for (let count = 0; !stop.signal.aborted; count += 1) {
    if (!flags["no-samples"]) await sendTicket(count);
    // The first ticket creates the inbox; a page that may only read cannot.
    if (count === 0)
      console.log(`Open ${page.resolvedUrls?.local[0]}\nTickets go to ${url}/webhooks/tickets`);
    await sleep(3000, undefined, { signal: stop.signal });
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
} finally {
  await page.close();
  signalbox.kill("SIGTERM");
  await exited;
}
