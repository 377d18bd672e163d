/** The output of `npm run build` is what users install. It must run as JavaScript below node_modules, without this repository. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const OWN = new Map([
  ["signalbox", "signalbox"],
  ["@signalbox/protocol", "protocol"],
  ["@signalbox/translate", "translate"],
  ["@signalbox/client", "client"],
]);
let project: string;

beforeAll(() => {
  const build = spawnSync(process.execPath, ["scripts/build.ts"], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(ROOT, "node_modules/.bin")}:${process.env["PATH"]}` },
  });
  expect(build.status, build.stdout + build.stderr).toBe(0);
  project = mkdtempSync(join(tmpdir(), "signalbox-published-"));
  installInto(join(project, "node_modules"));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** The built packages of this repository, and the repository's own dependencies. */
function installInto(modules: string): void {
  mkdirSync(join(modules, "@signalbox"), { recursive: true });
  for (const [name, folder] of OWN)
    cpSync(join(ROOT, "packages", folder, "dist"), join(modules, name), { recursive: true });
  // Versions that only the service uses come first.
  for (const folder of ["packages/signalbox/node_modules", "node_modules"]) {
    for (const name of readdirSync(join(ROOT, folder))) {
      if (name.startsWith(".") || name === "signalbox" || name === "@signalbox") continue;
      if (!existsSync(join(modules, name))) symlinkSync(join(ROOT, folder, name), join(modules, name));
    }
  }
}

it("the package serves with a configuration file that uses its types, and its commands reach the server", async () => {
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
  writeFileSync(
    join(project, "signalbox.config.ts"),
    'import { defineConfig } from "signalbox";\nexport default defineConfig({ listener: { maxConnections: 7 } });\n',
  );
  const child = spawn(
    process.execPath,
    [join(project, "node_modules/signalbox/bin/signalbox.js"), "serve", "--json", "--port", "0"],
    {
      cwd: project,
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(await (await fetch(`${url}/dashboard/`)).text()).toContain("<title>Signalbox</title>");
  const list = spawnSync(
    process.execPath,
    [join(project, "node_modules/signalbox/bin/signalbox.js"), "account", "list"],
    { cwd: project, encoding: "utf8" },
  );
  expect([list.stderr, list.stdout]).toEqual(["", expect.stringMatching(/^ID +NAME +CREATED\ndefault /)]);
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  expect((await exit)[0]).toBe(0);
});

it("the client and its hook can be imported", () => {
  writeFileSync(
    join(project, "use-client.js"),
    `import { AgentConnection, SignalboxClient } from "@signalbox/client";
     import { useAgent } from "@signalbox/client/react";
     const client = new SignalboxClient({ url: "http://127.0.0.1:1", token: "none" });
     const isConnection = client.agent({ agent: "Counter" }) instanceof AgentConnection;
     const refused = await client.accounts.get("default").catch((error) => error.name);
     console.log(isConnection, typeof useAgent, refused);`,
  );
  const { stdout, stderr } = spawnSync(process.execPath, ["use-client.js"], {
    cwd: project,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(stdout.trim()).toBe("true function SignalboxApiError");
});
