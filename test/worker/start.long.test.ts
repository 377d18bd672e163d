/** What stops a worker from starting, in one line each. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCliProcess } from "../support/server-process.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-worker-start-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The last line that `serve` prints before it exits. */
async function refusal(files: Record<string, string>, args: readonly string[]): Promise<string> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const { code, stderr } = await runCliProcess(
    ["serve", "--port", "0", "--data-dir", join(folder, "data"), "--no-reexec", ...args],
    { cwd: folder },
  );
  expect(code).not.toBe(0);
  for (const name of Object.keys(files)) await rm(join(folder, name));
  return stderr.trim().split("\n").at(-1) ?? "";
}

const WORKER = ["--worker", "worker.ts"];
const OPEN = [...WORKER, "--agents-access", "worker"];
const FETCH = "export default { fetch: () => new Response('x') };";

test("access must be stated", async () => {
  expect(await refusal({ "worker.ts": FETCH }, WORKER)).toMatch(
    /agents\.access: expected "worker", found "token".*--agents-access worker/,
  );
  expect(await refusal({}, ["--agents-access", "worker"])).toMatch(
    /agents\.access: "worker" requires agents\.worker/,
  );
  expect(await refusal({}, ["--agents-access", "open"])).toMatch(
    /--agents-access: expected token, public or worker/,
  );
});

test("load errors name the file and the reason", async () => {
  expect(await refusal({}, OPEN)).toMatch(/worker: worker\.ts: no such file/);
  expect(await refusal({ "worker.ts": "export default {" }, OPEN)).toMatch(
    /worker: worker\.ts: cannot be loaded: .*worker\.ts/,
  );
  expect(await refusal({ "worker.ts": 'import "./gone"; export default {};' }, OPEN)).toMatch(
    /worker: worker\.ts: cannot be loaded: .*gone/,
  );
  expect(await refusal({ "worker.ts": 'import "cloudflare:unheard-of";' }, OPEN)).toMatch(
    /cannot be loaded: the module cloudflare:unheard-of is not available on Signalbox/,
  );
  expect(await refusal({ "worker.ts": "export const x = 1;" }, OPEN)).toMatch(
    /worker\.ts: exports neither a handler/,
  );
});

test("the wrangler file must be readable and name exported classes", async () => {
  expect(await refusal({ "worker.ts": FETCH, "wrangler.jsonc": "{" }, OPEN)).toMatch(
    /wrangler\.jsonc: cannot be read/,
  );
  const wrangler = JSON.stringify({ durable_objects: { bindings: [{ name: "A", class_name: "Absent" }] } });
  expect(await refusal({ "worker.ts": FETCH, "wrangler.json": wrangler }, OPEN)).toMatch(
    /does not export the class Absent, which the binding A/,
  );
  const crons = JSON.stringify({ triggers: { crons: ["nonsense"] } });
  expect(await refusal({ "worker.ts": FETCH, "wrangler.json": crons }, OPEN)).toMatch(
    /"nonsense" is not a cron expression/,
  );
});

test("an agent module that imports the originals' package is told what to do", async () => {
  const native =
    'import { DurableObject } from "cloudflare:workers"; export class X extends DurableObject {}';
  expect(await refusal({ "agent.ts": native }, ["--agents", "agent.ts"])).toMatch(
    /agents: agent\.ts: cannot be loaded: the module cloudflare:workers exists in the worker mode only: start with --worker FILE, or import from "signalbox"/,
  );
});

test("a webhook source and its routes must name exported classes", async () => {
  const config = (github: object) => JSON.stringify({ webhooks: { sources: { github } } });
  const args = [...OPEN, "--config", "own.json"];
  const files = (github: object) => ({ "worker.ts": FETCH, "own.json": config(github) });
  expect(await refusal(files({ object: "Absent" }), args)).toMatch(
    /webhooks\.sources\.github\.object: expected a class that the worker exports, found "Absent"/,
  );
  const routes = [{ name: "main", to: { object: "Absent" } }];
  expect(await refusal(files({ routes }), args)).toMatch(
    /webhooks\.sources\.github\.routes\.main\.to\.object: expected a class that the worker exports, found "Absent"/,
  );
});
