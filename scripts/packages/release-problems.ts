/** What stands in the way of a release: the version, the changelog, the state of the repository. Changes nothing. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { changelogProblems } from "./changelog.ts";
import { type Manifest, PUBLISHED, readManifest } from "./published.ts";

const BRANCH = "main";
const VERSION = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9a-z]+(?:\.[0-9a-z]+)*))?$/;

/** One line each; empty if the version can be released. */
export function releaseProblems(root: string, version: string): string[] {
  if (!VERSION.test(version)) return [`"${version}" is not a version such as 1.2.3 or 1.2.3-rc.1`];
  const manifests = PUBLISHED.map((name) => readManifest(join(root, "packages", name)));
  return [
    ...versionProblems(manifests, version),
    ...changelogProblems(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version),
    ...repositoryProblems(root, version, manifests),
  ];
}

/** A pre-release is not what `npm install` without a version should give. */
export function distributionTag(version: string): "latest" | "next" {
  return version.includes("-") ? "next" : "latest";
}

function versionProblems(manifests: readonly Manifest[], version: string): string[] {
  const versions = new Set(manifests.map((manifest) => manifest.version));
  const [current = ""] = versions;
  if (versions.size > 1) return [`the packages have different versions: ${[...versions].join(", ")}`];
  return compareVersions(version, current) < 0 ? [`${version} is older than the current ${current}`] : [];
}

function repositoryProblems(root: string, version: string, manifests: readonly Manifest[]): string[] {
  const problems: string[] = [];
  if (git(root, "status", "--porcelain") !== "") problems.push("the working tree has changes");
  const branch = git(root, "branch", "--show-current");
  if (branch !== BRANCH) problems.push(`the branch is ${branch || "none"}, not ${BRANCH}`);
  if (git(root, "tag", "--list", `v${version}`) !== "") problems.push(`the tag v${version} exists already`);
  const behind = git(root, "rev-list", "--count", "HEAD..@{upstream}");
  if (behind !== "" && behind !== "0") problems.push(`${behind} commits of the remote branch are missing`);
  // npm refuses the provenance of a package that names another repository than the one it was built from.
  const origin = git(root, "remote", "get-url", "origin");
  const named = new Set(manifests.map(({ repository }) => repository.url));
  if (named.size !== 1) problems.push("the packages name different repositories");
  else if (origin !== "" && [...named].every((url) => repositoryPath(url) !== repositoryPath(origin)))
    problems.push(`the packages name ${[...named].join()} as their repository, but origin is ${origin}`);
  return problems;
}

/** `github.com/owner/name` of the forms of one address. */
function repositoryPath(url: string): string {
  return url
    .replace(/^git\+/, "")
    .replace(/^(https?|ssh|git):\/\/([^@/]+@)?/, "")
    .replace(/^[^@/]+@([^:/]+):/, "$1/")
    .replace(/\.git$/, "")
    .toLowerCase();
}

/** Below 0 if `a` is older. */
export function compareVersions(a: string, b: string): number {
  const [, ...left] = VERSION.exec(a) ?? [];
  const [, ...right] = VERSION.exec(b) ?? [];
  for (let i = 0; i < 3; i++) {
    const difference = Number(left[i]) - Number(right[i]);
    if (difference !== 0) return difference;
  }
  const [before = "", other = ""] = [left[3], right[3]];
  // A pre-release is older than its release.
  if (before === "" || other === "") return Number(before === "") - Number(other === "");
  return before.localeCompare(other, "en", { numeric: true });
}

/** The output, or an empty text if git fails. */
export function git(root: string, ...args: readonly string[]): string {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  return status === 0 ? stdout.trim() : "";
}
