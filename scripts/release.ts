/**
 * `npm run release -- <version>`: checks that the version can be released, builds and packs it, keeps data of it for the tests of later versions
 * (`keep.ts`), commits the version, and tags the commit.
 *   --dry-run   builds and packs, and prints what else would happen; changes nothing in the repository
 *   --publish   in CI, at the tag: builds, packs and publishes with provenance; packages that are published already are skipped
 *   --registry URL   publishes there, and not where npm is configured to
 *   --no-provenance  publishes without a statement of the CI job about the source, to a registry of one's own
 *   --out DIR   where the archives go: a new or empty folder (default release/<version>, which is replaced)
 *
 * Everything that can fail without a trace happens first: the version is written only after all packages are built and their archives checked.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildAll } from "./packages/build-all.ts";
import { SBOM_FILE } from "./packages/build-package.ts";
import { packAll, type Packed } from "./packages/pack-all.ts";
import { type Publication, publishAll, publishCommand } from "./packages/publish.ts";
import { packageFolder, readManifest, ROOT } from "./packages/published.ts";
import { git, releaseProblems } from "./packages/release-problems.ts";
import { setVersion } from "./packages/set-version.ts";

/** Below the root. */
const KEPT = "test/fixtures/kept";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    "dry-run": { type: "boolean", default: false },
    publish: { type: "boolean", default: false },
    registry: { type: "string" },
    "no-provenance": { type: "boolean", default: false },
    out: { type: "string" },
  },
});
const [version = ""] = positionals;
const isDryRun = values["dry-run"];
const publication: Publication = {
  version,
  registry: values.registry ?? null,
  hasProvenance: !values["no-provenance"],
};
const out = resolve(values.out ?? join(ROOT, "release", version));

if (values.out !== undefined && existsSync(out) && readdirSync(out).length > 0)
  throw new Error(`--out: ${out} is not empty`);
const problems = values.publish ? publicationProblems() : releaseProblems(ROOT, version);
for (const problem of problems) console.error(isDryRun ? `would be refused: ${problem}` : problem);
const isRefused = problems.length > 0 && (!isDryRun || problems[0]?.startsWith('"') === true);
process.exitCode = isRefused ? 1 : await release();

async function release(): Promise<number> {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  buildAll(version);
  const packed = await packAll(out);
  for (const { folder, file } of packed)
    copyFileSync(join(packageFolder(folder), "dist", SBOM_FILE), file.replace(/\.tgz$/, ".cdx.json"));
  writeFileSync(join(out, "SHA256SUMS"), packed.map(checksumLine).join(""));
  for (const { name, file, paths, unpackedBytes } of packed)
    console.log(
      `packed ${name}@${version}: ${paths.length} files, ${Math.ceil(unpackedBytes / 1024)} KB, ${file}`,
    );
  if (values.publish) {
    const isPublished = await publishAll(packed, publication, {
      folder: ROOT,
      report: (line) => console.log(line),
    });
    return isPublished ? 0 : 1;
  }
  const commands = [
    ["git", "add", KEPT],
    ["git", "commit", "--all", "--message", `release: ${version}`],
    ["git", "tag", "--annotate", `v${version}`, "--message", `Signalbox ${version}`],
  ] as const;
  if (isDryRun) {
    console.log(`would set the version of all packages to ${version}`);
    console.log(`would keep data of ${version} in ${KEPT}/${version}`);
    for (const command of commands) console.log(`would run ${command.join(" ")}`);
    for (const one of packed) console.log(`would publish: ${publishCommand(one, publication).join(" ")}`);
    return 0;
  }
  setVersion(ROOT, version);
  // With the version in the manifests: a backup names the version that has written it.
  if (run(["npm", "run", "keep"]) !== 0) {
    // The tree was clean, so that everything in it is of this run.
    run(["git", "restore", "."]);
    run(["git", "clean", "--force", "-d", KEPT]);
    return 1;
  }
  for (const command of commands) if (run(command) !== 0) return 1;
  console.log(
    `Next: git push origin main v${version}; CI runs npm run release -- ${version} --publish at the tag`,
  );
  return 0;
}

/** What CI must have: the tagged commit, and an identity that the registry accepts as provenance. */
function publicationProblems(): string[] {
  const manifest = readManifest(packageFolder("signalbox"));
  const hasIdentity =
    process.env["ACTIONS_ID_TOKEN_REQUEST_URL"] !== undefined ||
    process.env["SIGSTORE_ID_TOKEN"] !== undefined;
  return [
    ...(manifest.version === version
      ? []
      : [`the packages have version ${manifest.version}, not ${version}`]),
    ...(existsSync(join(ROOT, KEPT, version))
      ? []
      : [`${KEPT}/${version} is missing: later versions could not be tested on data of this one`]),
    ...(git(ROOT, "status", "--porcelain") === "" ? [] : ["the working tree has changes"]),
    ...(git(ROOT, "tag", "--points-at", "HEAD").split("\n").includes(`v${version}`)
      ? []
      : [`this commit does not have the tag v${version}`]),
    ...(hasIdentity || !publication.hasProvenance
      ? []
      : ["provenance needs a CI job with an identity token (GitHub: permissions: id-token: write)"]),
  ];
}

function checksumLine({ file }: Packed): string {
  return `${createHash("sha256").update(readFileSync(file)).digest("hex")}  ${basename(file)}\n`;
}

function run([tool = "", ...args]: readonly string[]): number {
  return spawnSync(tool, args, { stdio: "inherit", cwd: ROOT }).status ?? 1;
}
