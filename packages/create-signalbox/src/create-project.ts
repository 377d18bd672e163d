/**
 * Writes the files of a new project.
 *
 * 1. No file is replaced: if one of the names is taken, nothing is written.
 * 2. If a file cannot be written, those that were written are removed again.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { nodeOfScripts, projectManifest } from "./project-manifest.ts";

export interface CreatedProject {
  /** Absolute. */
  readonly folder: string;
  readonly name: string;
  /** Names of the written files. */
  readonly files: readonly string[];
  /** True if the project installs Node itself, because the current one is too old. */
  readonly hasOwnNode: boolean;
}

/** The project cannot be created there. The message is one line and says what to do. */
export class ProjectError extends Error {
  override readonly name = "ProjectError";
}

const TEMPLATE = new URL("../template/", import.meta.url);
/** npm leaves a `.gitignore` out of packages, or renames it, so the template has other names. */
const REAL_NAMES: Readonly<Record<string, string>> = { _gitignore: ".gitignore" };
/** The name of a project whose folder has none that npm accepts. */
const DEFAULT_NAME = "signalbox-app";

export function createProject(
  given: string,
  workingFolder: string,
  nodeVersion: string = nodeOfScripts(),
): CreatedProject {
  const folder = resolve(workingFolder, given);
  const name = packageName(basename(folder));
  const manifest = projectManifest(name, folder, nodeVersion);
  const files = new Map([["package.json", `${JSON.stringify(manifest.content, null, 2)}\n`]]);
  for (const file of readdirSync(TEMPLATE)) {
    const text = readFileSync(new URL(file, TEMPLATE), "utf8");
    files.set(REAL_NAMES[file] ?? file, text.replaceAll("{{name}}", name));
  }
  refuseTaken(folder, [...files.keys()]);
  writeAll(folder, files);
  return { folder, name, files: [...files.keys()].sort(), hasOwnNode: manifest.hasOwnNode };
}

function refuseTaken(folder: string, names: readonly string[]): void {
  const state = lstatSync(folder, { throwIfNoEntry: false });
  if (state?.isFile() === true) throw new ProjectError(`${folder} is a file, not a folder`);
  const taken = names.filter(
    (file) => state !== undefined && lstatSync(join(folder, file), { throwIfNoEntry: false }) !== undefined,
  );
  if (taken.length > 0)
    throw new ProjectError(
      `${folder} already has ${taken.join(", ")}; nothing was written. Choose another folder, or add an agent to this project as ` +
        "docs/guides/your-own-project.md describes",
    );
}

function writeAll(folder: string, files: ReadonlyMap<string, string>): void {
  const written: string[] = [];
  /** The first folder that did not exist, or undefined. */
  let made: string | undefined;
  try {
    made = mkdirSync(folder, { recursive: true });
    for (const [name, text] of files) {
      const path = join(folder, name);
      // `wx`: another process may have created the file in the meantime.
      writeFileSync(path, text, { flag: "wx" });
      written.push(path);
    }
  } catch (cause) {
    for (const path of written) rmSync(path, { force: true });
    if (made !== undefined) rmSync(made, { recursive: true, force: true });
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ProjectError(`the project cannot be written: ${reason}`, { cause });
  }
}

/** What npm accepts as the name of a package, from the name of a folder. */
function packageName(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replaceAll(/^[^a-z0-9]+|[^a-z0-9]+$/g, "")
    .slice(0, 200);
  // A project that has the name of its dependency cannot be installed.
  return name === "" || name === "signalbox" || name === "node_modules" ? DEFAULT_NAME : name;
}
