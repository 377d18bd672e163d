/**
 * Starts Signalbox, stores the documents of a folder in the agent, and serves the page. Ctrl-C ends it.
 *
 *   --documents <d>     folder with Markdown files; default documents
 *   --port <n>          port of the page; default 5173, 0 selects a free port
 *   --service-port <n>  port of Signalbox; default: a free port
 *   --data-dir <d>      data folder of Signalbox; default .signalbox
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { SignalboxClient } from "@signalbox/client";
import { build, preview } from "vite";
import { startModel } from "./model.ts";

const { values: flags } = parseArgs({
  options: {
    documents: { type: "string", default: join(import.meta.dirname, "documents") },
    port: { type: "string", default: "5173" },
    "service-port": { type: "string", default: "0" },
    "data-dir": { type: "string", default: ".signalbox" },
  },
});

const model = startModel();
await once(model, "listening");

const rootToken = process.env["SIGNALBOX_ROOT_TOKEN"] ?? randomBytes(20).toString("hex");
const args = ["serve", "--json", "--port", flags["service-port"], "--data-dir", flags["data-dir"]];
const signalbox = spawn("signalbox", args, {
  cwd: import.meta.dirname,
  stdio: ["ignore", "pipe", "inherit"],
  env: {
    SIGNALBOX_LOG_LEVEL: "warn",
    ...process.env,
    SIGNALBOX_ROOT_TOKEN: rootToken,
    DEMO_MODEL_URL: `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`,
  },
});
const exited = once(signalbox, "exit");
// Signalbox must end with this process in all cases; Vite exits the process on SIGTERM.
process.once("exit", () => signalbox.kill("SIGTERM"));
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => signalbox.kill("SIGTERM"));
const [line] = (await Promise.race([
  once(createInterface(signalbox.stdout), "line"),
  exited.then(() => Promise.reject(new Error("Signalbox did not start"))),
])) as [string];
const { url } = JSON.parse(line) as { url: string };

const client = new SignalboxClient({ url, token: rootToken });
for (const file of globSync("**/*.md", { cwd: flags.documents }))
  await client.callAgent({ agent: "handbook", name: "company" }, "put", [
    file,
    readFileSync(join(flags.documents, file), "utf8"),
  ]);

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
console.log(`Open ${page.resolvedUrls?.local[0]}\nSignalbox is at ${url}`);

await exited;
await page.close();
model.close();
model.closeAllConnections();
