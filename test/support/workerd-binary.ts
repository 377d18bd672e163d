/** The program of the `workerd` package, not its start script: the process that is measured and killed must be the server itself. */
import { createRequire } from "node:module";
import { arch, platform } from "node:os";

const SYSTEMS: Readonly<Record<string, string>> = {
  "linux x64": "linux-64",
  "linux arm64": "linux-arm64",
  "darwin x64": "darwin-64",
  "darwin arm64": "darwin-arm64",
};

export function findWorkerd(): string {
  const system = SYSTEMS[`${platform()} ${arch()}`];
  if (system === undefined) throw new Error(`workerd does not run on ${platform()} ${arch()}`);
  const fromPackage = createRequire(createRequire(import.meta.url).resolve("workerd/package.json"));
  return fromPackage.resolve(`@cloudflare/workerd-${system}/bin/workerd`);
}
