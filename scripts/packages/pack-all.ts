/** Packs the built packages and checks the archives as a registry would hand them out. */
import { checkPackage, createPackageFromTarballData, type Problem } from "@arethetypeswrong/core";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { SBOM_FILE } from "./build-package.ts";
import { packageFolder, PUBLISHED } from "./published.ts";

export interface Packed {
  /** Folder below packages/. */
  readonly folder: string;
  readonly name: string;
  readonly version: string;
  /** Path of the archive. */
  readonly file: string;
  /** Paths in the archive. */
  readonly paths: readonly string[];
  readonly unpackedBytes: number;
}

/**
 * Problems that are not defects of an ESM-only package. `node10`: TypeScript's resolution from before `exports`, which no supported Node uses.
 * `CJSResolvesToESM`: a CommonJS file gets the ES module; Node loads it with `require` from version 22 on, and so does TypeScript with `nodenext`.
 */
function isAccepted(problem: Problem): boolean {
  return (
    problem.kind === "CJSResolvesToESM" ||
    ("resolutionKind" in problem && problem.resolutionKind === "node10")
  );
}

/** What belongs to no archive: tests, their fixtures, sources and settings of the repository. */
const FOREIGN_FILE =
  /\.test\.|-(contract|fixture)\.|\/contract\/|(^|\/)(node_modules|\.cache)\/|tsconfig\.build|\.tgz$/;
/** Files of the projects that create-signalbox writes, with a test. */
const TEMPLATE = "template/";
const EXPECTED_FILES = ["package.json", "README.md", "LICENSE", SBOM_FILE];

/** Packs into `target`. Throws an error with all problems of all packages. */
export async function packAll(target: string): Promise<Packed[]> {
  mkdirSync(target, { recursive: true });
  const packed = pack(target);
  const problems = await Promise.all(packed.map(findProblems));
  if (problems.flat().length > 0)
    throw new Error(`the packages are not ready:\n${problems.flat().join("\n")}`);
  return packed;
}

function pack(target: string): Packed[] {
  const folders = PUBLISHED.map((name) => join(packageFolder(name), "dist"));
  const { status, stdout, stderr } = spawnSync(
    "npm",
    ["pack", "--json", "--ignore-scripts", "--pack-destination", target, ...folders],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(`npm pack failed: ${stderr}`);
  const archives = readReport(stdout);
  return PUBLISHED.map((folder, i) => {
    const archive = archives[i];
    if (archive === undefined) throw new Error(`npm pack reports no archive of ${folder}`);
    return {
      folder,
      name: archive.name,
      version: archive.version,
      file: join(target, archive.filename),
      paths: archive.files.map((file) => file.path),
      unpackedBytes: archive.unpackedSize,
    };
  });
}

interface Archive {
  readonly name: string;
  readonly version: string;
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** npm prints an array; from version 12 on it may be an object by package name. */
function readReport(stdout: string): readonly Archive[] {
  const report = JSON.parse(stdout) as Archive[] | Record<string, Archive>;
  return Array.isArray(report) ? report : Object.values(report);
}

async function findProblems({ name, file, paths }: Packed): Promise<string[]> {
  const bytes = readFileSync(file);
  const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  const types = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)));
  const typeProblems = types.types === false ? ["it has no types"] : types.problems.filter(isDefect);
  return [
    ...messages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code),
    ...typeProblems.map((problem) => (typeof problem === "string" ? problem : JSON.stringify(problem))),
    ...paths
      .filter((path) => FOREIGN_FILE.test(path) && !path.startsWith(TEMPLATE))
      .map((path) => `${path} does not belong to it`),
    ...EXPECTED_FILES.filter((path) => !paths.includes(path)).map((path) => `${path} is missing`),
  ].map((problem) => `${name}: ${problem}`);
}

function isDefect(problem: Problem): boolean {
  return !isAccepted(problem);
}
