/** The checks of a release in a repository of its own, and what it writes. The build is tested with its archives, in test/packages. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changelogProblems, parseChangelog } from "./changelog.ts";
import { PUBLISHED, ROOT } from "./published.ts";
import { compareVersions, distributionTag, releaseProblems } from "./release-problems.ts";
import { setVersion } from "./set-version.ts";

let root: string;
const git = (...args: readonly string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
    cwd: root,
    stdio: "pipe",
  });

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "signalbox-release-"));
  for (const name of [...PUBLISHED, "dashboard"]) {
    mkdirSync(join(root, "packages", name), { recursive: true });
    const path = join("packages", name, "package.json");
    cpSync(join(ROOT, path), join(root, path));
  }
  cpSync(join(ROOT, "package-lock.json"), join(root, "package-lock.json"));
  writeFileSync(
    join(root, "CHANGELOG.md"),
    "# Changelog\n\n## Unreleased\n\n## 7.0.0 (2030-01-02)\n\n- new\n",
  );
  git("init", "--quiet", "--initial-branch=main");
  git("add", "--all");
  git("commit", "--quiet", "--message", "first");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it("a clean main branch with the version in the changelog can be released", () => {
  expect(releaseProblems(root, "7.0.0")).toEqual([]);
});

it.each([
  ["7.0", '"7.0" is not a version such as 1.2.3 or 1.2.3-rc.1'],
  ["7.0.0; rm", '"7.0.0; rm" is not a version such as 1.2.3 or 1.2.3-rc.1'],
  ["8.0.0", 'CHANGELOG.md has no section "## 8.0.0 (date)"'],
])("%j cannot be released", (version, problem) => {
  expect(releaseProblems(root, version)).toEqual([problem]);
});

it("changes, another branch, the tag, another origin and an older version stand in the way", () => {
  writeFileSync(join(root, "new.txt"), "");
  git("checkout", "--quiet", "-b", "other");
  git("tag", "v7.0.0");
  git("remote", "add", "origin", "git@example.com:other/project.git");
  expect(releaseProblems(root, "7.0.0")).toEqual([
    "the working tree has changes",
    "the branch is other, not main",
    "the tag v7.0.0 exists already",
    expect.stringMatching(
      /^the packages name .* as their repository, but origin is git@example\.com:other\/project\.git$/,
    ),
  ]);
  git("remote", "set-url", "origin", "git@github.com:signalbox/signalbox.git");
  git("tag", "--delete", "v7.0.0");
  git("checkout", "--quiet", "main");
  rmSync(join(root, "new.txt"));
  expect(releaseProblems(root, "7.0.0")).toEqual([]);
  expect(releaseProblems(root, "0.0.1")[0]).toMatch(/^0\.0\.1 is older than the current /);
});

it("one version is written to all packages, their ranges and the lock file", () => {
  setVersion(root, "7.0.0");
  const read = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8")) as Record<string, never>;
  expect(read("packages/signalbox/package.json")).toMatchObject({
    version: "7.0.0",
    dependencies: {
      "@signalbox/client": "^7.0.0",
      "create-signalbox": "^7.0.0",
      ws: expect.stringMatching(/^\^8/) as string,
    },
  });
  expect(read("packages/dashboard/package.json")).toMatchObject({ version: "7.0.0" });
  expect(read("package-lock.json")["packages"]).toMatchObject({
    "packages/client": { version: "7.0.0", dependencies: { "@signalbox/protocol": "^7.0.0" } },
  });
});

describe("the changelog", () => {
  it("of this repository has Unreleased first, and then versions with dates, newest first", () => {
    const [first, ...released] = parseChangelog(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"));
    expect(first?.title).toBe("Unreleased");
    for (const { title, date } of released) expect([title, date]).not.toContain(title === "" ? "" : null);
    const versions = released.map(({ title }) => title);
    expect(versions).toEqual([...versions].sort(compareVersions).toReversed());
  });

  it.each([
    ["## 1.0.0 (2030-01-01)\n\n- a\n", 'CHANGELOG.md does not begin with "## Unreleased"'],
    ["## Unreleased\n\n## 1.0.0\n\n- a\n", "CHANGELOG.md: 1.0.0 has no date"],
    [
      "## Unreleased\n\n## 1.0.0 (2030-01-01)\n\n## 0.9.0 (2029-01-01)\n",
      "CHANGELOG.md: the section of 1.0.0 is empty",
    ],
    [
      "## Unreleased\n\n## The first\n",
      'CHANGELOG.md has a heading other than "## Unreleased" and "## 1.2.3 (2026-11-17)"',
    ],
  ])("%j", (text, problem) => {
    expect(changelogProblems(text, "1.0.0")).toEqual([problem]);
  });
});

it("a pre-release is older than its release, and is not the latest version", () => {
  const ordered = ["0.9.9", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0", "1.0.1", "1.10.0"];
  expect(ordered.toReversed().sort(compareVersions)).toEqual(ordered);
  expect(ordered.map(distributionTag)).toEqual(["latest", "next", "next", "latest", "latest", "latest"]);
});
