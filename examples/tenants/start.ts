/**
 * Starts Signalbox, adds three tenants, calls a model for each of them until one has used up its budget, and prints the bills. The service then
 * goes on, so that the dashboard can be looked at; Ctrl-C ends it.
 *
 *   --port <n>      port of Signalbox; default 8787, 0 selects a free port
 *   --data-dir <d>  data folder of Signalbox; default .signalbox
 *   --once          ends after the bills
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { SignalboxClient } from "@signalbox/client";
import { addTenant, ask, bills, type Tenant } from "./tenants.ts";

const { values: flags } = parseArgs({
  options: {
    port: { type: "string", default: "8787" },
    "data-dir": { type: "string", default: ".signalbox" },
    once: { type: "boolean", default: false },
  },
});

const rootToken = process.env["SIGNALBOX_ROOT_TOKEN"] ?? randomBytes(20).toString("hex");
const args = ["serve", "--json", "--port", flags.port, "--data-dir", flags["data-dir"]];
const signalbox = spawn("signalbox", args, {
  cwd: import.meta.dirname,
  stdio: ["ignore", "pipe", "inherit"],
  env: { SIGNALBOX_LOG_LEVEL: "error", ...process.env, SIGNALBOX_ROOT_TOKEN: rootToken },
});
const exited = once(signalbox, "exit");
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => signalbox.kill("SIGTERM"));
const [line] = (await Promise.race([
  once(createInterface(signalbox.stdout), "line"),
  exited.then(() => Promise.reject(new Error("Signalbox did not start"))),
])) as [string];
const { url } = JSON.parse(line) as { url: string };
const client = new SignalboxClient({ url, token: rootToken });

const TENANTS: readonly Tenant[] = [
  { id: "acme", plan: "team", dailyBudget: 5 },
  { id: "globex", plan: "team", dailyBudget: 5 },
  { id: "hobby", plan: "free", dailyBudget: 0.004 },
];

try {
  // `echo` costs nothing; with this price it stands for a real model. US dollars per million tokens.
  await client
    .account()
    .budgets.changePrices((prices) => ({ ...prices, echo: { "*": { in: 10, out: 30 } } }));
  for (const tenant of TENANTS) {
    const key = await addTenant(client, tenant);
    const statuses: number[] = [];
    for (let n = 0; n < 8; n += 1)
      statuses.push(await ask(key, `user-${n % 2}`, `Question ${n} of ${tenant.id}`));
    const refused = statuses.filter((status) => status === 429).length;
    console.log(
      `${tenant.id}: ${statuses.length - refused} calls answered, ${refused} refused by the budget`,
    );
  }
  await printBills("tenant");
  await printBills("plan");
  if (!flags.once) {
    const { url: link } = await client.createLoginLink();
    console.log(`\nDashboard: ${link}\nCtrl-C ends the service.`);
    await exited;
  }
} finally {
  signalbox.kill("SIGTERM");
  await exited;
}

async function printBills(tag: "tenant" | "plan"): Promise<void> {
  console.log(`\nCost by ${tag}`);
  for (const { of, calls, cost } of await bills(client, tag))
    console.log(`  ${of.padEnd(8)} ${String(calls).padStart(3)} calls  $${cost.toFixed(5)}`);
}
