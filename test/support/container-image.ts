/**
 * Builds the image of `deploy/docker/Dockerfile` without a container engine: every instruction is carried out in a folder for each stage, and RUN in
 * a chroot of it. Limits: the base image is made of this machine's Node and C library; the two installations and the build are replaced by what is
 * installed and built here (`REPLACED`, by their exact text); there are no namespaces, so the server is not process 1.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, linkSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from "node:fs";
import { dirname, join, matchesGlob, relative } from "node:path";
import { withBuiltPackages } from "./built-packages.ts";
import { parseDockerfile, type Stage } from "./dockerfile.ts";

const ROOT = join(import.meta.dirname, "../..");
/** The PATH of a user may lack it. */
const CHROOT = "/usr/sbin/chroot";
const PROGRAMS = ["/bin/sh", "/usr/bin/env", "/usr/bin/install", "/usr/bin/find", "/bin/ln"];

export interface Image {
  readonly stage: Stage;
  readonly root: string;
}

const REPLACED: Readonly<Record<string, (folder: string) => void>> = {
  // For the build, which is replaced.
  "--mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund": () => undefined,
  "npm run build": (folder) => {
    for (const name of ["protocol", "translate", "client", "create-signalbox", "signalbox"])
      cpSync(join(ROOT, "packages", name, "dist"), join(folder, "packages", name, "dist"), {
        recursive: true,
      });
  },
  "--mount=type=cache,target=/root/.npm npm ci --omit=dev --workspace=packages/signalbox --ignore-scripts --no-audit --no-fund":
    installProduction,
};

export async function buildImage(folder: string): Promise<Image> {
  if (process.getuid?.() !== 0)
    throw new Error("the test of the image needs root, for chroot and for the owner of /data");
  return withBuiltPackages(() => buildStages(folder));
}

function buildStages(folder: string): Image {
  const built = new Map<string, string>();
  let image: Image | undefined;
  for (const [index, stage] of parseDockerfile().entries()) {
    const root = join(folder, `stage-${index}`);
    makeBase(root);
    buildStage(stage, root, built);
    built.set(stage.name, root);
    image = { stage, root };
  }
  if (image === undefined) throw new Error("the Dockerfile has no stage");
  return image;
}

/** The words that start a command in the image, as its user and in its folder: no process stays between. */
export function inImage({ root, stage }: Image, command: readonly string[]): [string, string[]] {
  const script = 'cd "$0" && exec "$@"';
  return [CHROOT, [`--userspec=${stage.user}`, root, "/bin/sh", "-c", script, stage.folder, ...command]];
}

function buildStage(stage: Stage, root: string, built: ReadonlyMap<string, string>): void {
  let folder = "/";
  for (const { word, text } of stage.instructions) {
    if (word === "WORKDIR") {
      folder = text;
      mkdirSync(join(root, folder), { recursive: true });
    } else if (word === "COPY") copy(text, root, folder, built);
    else if (word === "RUN") run(text, root, folder);
  }
}

function copy(text: string, root: string, folder: string, built: ReadonlyMap<string, string>): void {
  const words = text.split(/\s+/);
  const from = words[0]?.startsWith("--from=") === true ? words.shift()?.slice("--from=".length) : undefined;
  const [source = "", target = "", ...more] = words;
  if (more.length > 0 || source.startsWith("--")) throw new Error(`COPY ${text} is not known to this test`);
  const to = join(root, target.startsWith("/") ? target : join(folder, target));
  mkdirSync(dirname(to), { recursive: true });
  if (from !== undefined)
    cpSync(join(built.get(from) ?? "", source), to, { recursive: true, verbatimSymlinks: true });
  else
    cpSync(join(ROOT, source), to, { recursive: true, filter: (path) => !isIgnored(relative(ROOT, path)) });
}

function run(text: string, root: string, folder: string): void {
  const replaced = REPLACED[text];
  if (replaced !== undefined) return replaced(join(root, folder));
  if (text.startsWith("npm ") || text.startsWith("--"))
    throw new Error(`RUN ${text} is not known to this test`);
  execFileSync(CHROOT, [root, "/bin/sh", "-c", `cd ${folder} && ${text}`], {
    env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
    stdio: ["ignore", "ignore", "inherit"],
  });
}

let patterns: readonly string[] | undefined;

/** As .dockerignore says: a pattern matches a path or a folder above it (`cpSync` does not enter a folder that is left out). */
export function isIgnored(path: string): boolean {
  patterns ??= readFileSync(join(ROOT, ".dockerignore"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  return patterns.some((pattern) => matchesGlob(path, pattern));
}

/** Node, a shell and the programs that the Dockerfile runs, with their libraries. Nothing but /data will be writable for the user of the image. */
function makeBase(root: string): void {
  mkdirSync(join(root, "tmp"), { recursive: true });
  place(process.execPath, join(root, "usr/local/bin/node"));
  for (const program of [process.execPath, ...PROGRAMS]) {
    if (program !== process.execPath) place(program, join(root, program));
    for (const [, library = ""] of execFileSync("ldd", [program], { encoding: "utf8" }).matchAll(
      /(\/\S+) \(0x/g,
    ))
      place(library, join(root, library));
  }
}

function place(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  if (existsSync(target)) return;
  try {
    // Node has 120 MB, and nothing writes to it.
    linkSync(realpathSync(source), target);
  } catch {
    // On another file system, or linked too often.
    cpSync(realpathSync(source), target);
  }
}

interface LockedPackage {
  readonly link?: boolean;
  readonly resolved?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** What the service needs according to the lock file, from the packages that are installed here; workspaces are links, as npm makes them. */
function installProduction(folder: string): void {
  const { packages } = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  const seen = new Set<string>();
  const add = (at: string) => {
    const found = packages[at];
    if (found === undefined || seen.has(at)) return;
    seen.add(at);
    const { link, resolved = "", dependencies = {}, optionalDependencies = {} } = found;
    mkdirSync(dirname(join(folder, at)), { recursive: true });
    if (link === true) {
      symlinkSync(relative(dirname(join(folder, at)), join(folder, resolved)), join(folder, at));
      add(resolved);
      return;
    }
    const isOwn = !at.includes("node_modules");
    // Packages for other systems are not installed.
    if (!isOwn) copyPackage(join(ROOT, at), join(folder, at));
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies }))
      add(locate(packages, at, name));
  };
  add("node_modules/signalbox");
}

function copyPackage(source: string, target: string): void {
  try {
    cpSync(source, target, { recursive: true, filter: (path) => relative(source, path) !== "node_modules" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** As Node resolves: the nearest `node_modules` above. */
function locate(packages: Record<string, LockedPackage>, from: string, name: string): string {
  for (let at = from; ; at = at.includes("/") ? at.slice(0, at.lastIndexOf("/")) : "") {
    const path = at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`;
    if (packages[path] !== undefined || at === "") return path;
  }
}
