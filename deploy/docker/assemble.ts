/**
 * `node deploy/docker/assemble.ts <target>`: puts what runs into one folder, after `npm run build` and an installation without development
 * dependencies: the built packages in place of the links to their sources, and the packages that they use, in the versions of the lock file.
 */
import { cpSync, existsSync, lstatSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const INSTALLED = join(ROOT, "node_modules");
const target = process.argv[2];
if (target === undefined) throw new Error("expected the target folder");
const modules = join(target, "node_modules");

cpSync(INSTALLED, modules, { recursive: true, verbatimSymlinks: true });
rmSync(join(modules, ".bin"), { recursive: true, force: true });
for (const name of linkedPackages()) {
  const link = join(INSTALLED, name);
  const source = resolve(dirname(link), readlinkSync(link));
  const placed = join(modules, name);
  rmSync(placed);
  // A workspace that is not published, such as an example, is not needed.
  if (!existsSync(join(source, "dist/package.json"))) continue;
  cpSync(join(source, "dist"), placed, { recursive: true });
  const own = join(source, "node_modules");
  if (existsSync(own)) cpSync(own, join(placed, "node_modules"), { recursive: true });
}

function linkedPackages(): string[] {
  const names = readdirSync(INSTALLED).flatMap((name) =>
    name.startsWith("@") ? readdirSync(join(INSTALLED, name)).map((inner) => join(name, inner)) : [name],
  );
  return names.filter((name) => lstatSync(join(INSTALLED, name)).isSymbolicLink());
}
