/**
 * Starts Signalbox and a small Slack to talk to the bot in. Ctrl-C ends both.
 *
 *   --port <n>          port of the page; default 5173, 0 selects a free port
 *   --service-port <n>  port of Signalbox; default: a free port
 *   --data-dir <d>      data folder of Signalbox; default .signalbox
 *   --real              no small Slack: SLACK_WEBHOOK_SECRET verifies Slack's events, and SLACK_BOT_TOKEN posts the answers
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { startSlack } from "./slack.ts";

const { values: flags } = parseArgs({
  options: {
    port: { type: "string", default: "5173" },
    "service-port": { type: "string", default: "0" },
    "data-dir": { type: "string", default: ".signalbox" },
    real: { type: "boolean", default: false },
  },
});

const signingSecret = process.env["SLACK_WEBHOOK_SECRET"] ?? randomBytes(20).toString("hex");
const botToken = process.env["SLACK_BOT_TOKEN"] ?? randomBytes(20).toString("hex");
const slack = flags.real ? null : await startSlack({ port: Number(flags.port), botToken, signingSecret });

const args = ["serve", "--json", "--port", flags["service-port"], "--data-dir", flags["data-dir"]];
const signalbox = spawn("signalbox", args, {
  cwd: import.meta.dirname,
  stdio: ["ignore", "pipe", "inherit"],
  env: {
    SIGNALBOX_LOG_LEVEL: "warn",
    ...process.env,
    SLACK_WEBHOOK_SECRET: signingSecret,
    SLACK_BOT_TOKEN: botToken,
    ...(slack === null ? {} : { SLACK_API: `${slack.url}/api` }),
  },
});
const exited = once(signalbox, "exit");
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => signalbox.kill("SIGTERM"));
process.once("exit", () => signalbox.kill("SIGTERM"));
const [line] = (await Promise.race([
  once(createInterface(signalbox.stdout), "line"),
  exited.then(() => Promise.reject(new Error("Signalbox did not start"))),
])) as [string];
const { url } = JSON.parse(line) as { url: string };

const events = `${url}/webhooks/slack`;
slack?.subscribe(events);
if (slack !== null) console.log(`Open ${slack.url}`);
console.log(`Events go to ${events}`);

await exited;
slack?.close();
