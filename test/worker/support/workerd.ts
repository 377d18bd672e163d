/** Bare workerd with a program of `test/worker/programs`: what the originals' runtime itself answers. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorker } from "../../support/worker-bundle.ts";
import { findWorkerd } from "../../support/workerd-binary.ts";
import { PROGRAMS } from "./worker-server.ts";

export interface Workerd {
  readonly url: string;
  /** Ends the process and removes its storage. */
  remove(): Promise<void>;
}

/** Starts the program with empty storage. Every class is a namespace of its own name. */
export async function startWorkerd(
  program: string,
  classes: readonly string[],
  flags: readonly string[] = [],
): Promise<Workerd> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-workerd-"));
  await mkdir(join(folder, "storage"));
  await writeFile(join(folder, "worker.js"), await bundleWorker(join(PROGRAMS, program)));
  await writeFile(join(folder, "email.js"), "export default { EmailMessage: class {} };\n");
  await writeFile(join(folder, "config.capnp"), configOf(classes, flags));
  // It tells its port on the control channel, so that no port is chosen in advance.
  const child = spawn(findWorkerd(), ["serve", "config.capnp", "--control-fd=1", "--experimental"], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exit = once(child, "exit");
  const port = await new Promise<number>((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const found = /"event":"listen","socket":"http","port":(\d+)/.exec(text);
      if (found !== null) resolve(Number(found[1]));
    });
    exit.then(([code]) => reject(new Error(`workerd ended with ${String(code)}`)), reject);
  });
  return {
    url: `http://127.0.0.1:${port}`,
    async remove() {
      child.kill("SIGKILL");
      await exit;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function configOf(classes: readonly string[], flags: readonly string[]): string {
  const bindings = classes.map((name) => `(name = "${name}", durableObjectNamespace = "${name}")`);
  const namespaces = classes.map(
    (name) => `(className = "${name}", uniqueKey = "key-of-${name}", enableSql = true)`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "storage", disk = (path = "storage", writable = true))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
  # The agents package imports the e-mail module, which only the hosted platform has.
  extensions = [(modules = [(name = "cloudflare-internal:email", esModule = embed "email.js", internal = true)])],
);

const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-10-01",
  compatibilityFlags = ${JSON.stringify(flags)},
  bindings = [${bindings.join(", ")}],
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = (localDisk = "storage"),
);
`;
}
