/**
 * Builds one package into its `dist/`, with the layout of its sources.
 *
 * 1. The JavaScript is the source with its types replaced by blanks, as Node itself does when it runs the sources (decision 0001). Every line and
 *    column of a stack trace is that of the source in the repository, without source maps.
 * 2. Relative specifiers end in `.js` instead of `.ts`, which has the same length. A specifier without a file fails the build.
 * 3. Tests and their fixtures are not part of a package, nor are declarations that no export of the package reaches.
 */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, relative } from "node:path";
import { readLockFile } from "./lock-file.ts";
import { type Manifest, packageFolder, readManifest, ROOT, withVersion } from "./published.ts";
import { createSbom } from "./sbom.ts";

/** The bill of materials in every package. */
export const SBOM_FILE = "sbom.cdx.json";

/** Files of the sources that only tests import. */
const TEST_FILE = /(\.test|-contract|-fixture|-model)\.tsx?$|(^|\/)contract\//;
/** String literals that name a file of the package: of imports, exports, `import()` and `new URL()`. */
const RELATIVE_SPECIFIER = /(["'])(\.{1,2}\/[\w./-]+)\.ts\1/g;
const IMPORTED_FILE = /(?:from|import|import\(|new URL\()\s*["'](\.{1,2}\/[^"']+)["']/g;

export function buildPackage(name: string, version?: string): void {
  const folder = packageFolder(name);
  const out = join(folder, "dist");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const source = readManifest(folder);
  const manifest = toPublished(version === undefined ? source : withVersion(source, version));
  emitDeclarations(folder, out, Object.values(source.exports));
  for (const path of globSync("src/**/*", { cwd: folder })) {
    if (TEST_FILE.test(path)) continue;
    if (path.endsWith(".ts")) writeFile(join(out, toJavaScriptName(path)), toJavaScript(join(folder, path)));
    else if (/\.(sql|json)$/.test(path)) writeFile(join(out, path), readFileSync(join(folder, path)));
  }
  keepReachableDeclarations(out, Object.values(manifest.exports));
  for (const part of ["bin", "template", "README.md"]) {
    if (existsSync(join(folder, part))) cpSync(join(folder, part), join(out, part), { recursive: true });
  }
  for (const path of globSync("bin/*.js", { cwd: out })) {
    const file = join(out, path);
    writeFileSync(file, withJavaScriptSpecifiers(readFileSync(file, "utf8")));
  }
  cpSync(join(ROOT, "LICENSE"), join(out, "LICENSE"));
  writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const sbom = createSbom(name, manifest, readLockFile(ROOT));
  writeFileSync(join(out, SBOM_FILE), `${JSON.stringify(sbom, null, 2)}\n`);
  checkSpecifiers(out);
}

function toPublished(manifest: Manifest): Manifest {
  const { devDependencies: _, ...published } = manifest;
  const exports = Object.entries(manifest.exports).map(([path, file]) => [path, toJavaScriptName(file)]);
  return {
    ...published,
    files: [...manifest.files, SBOM_FILE],
    exports: Object.fromEntries(exports) as Record<string, string>,
  };
}

/** `npm run check` has checked the types; here they are only written. */
function emitDeclarations(folder: string, out: string, entries: readonly string[]): void {
  const config = join(out, "tsconfig.json");
  writeFileSync(
    config,
    JSON.stringify({
      extends: relative(out, join(ROOT, "tsconfig.build.json")),
      compilerOptions: { rootDir: "../src", outDir: "src", emitDeclarationOnly: true, noCheck: true },
      files: entries.map((entry) => join("..", entry)),
      include: [],
    }),
  );
  const { status } = spawnSync("tsc", ["-p", config], { stdio: "inherit", cwd: folder });
  if (status !== 0) throw new Error(`${relative(ROOT, folder)}: the declarations cannot be written`);
  rmSync(config);
}

function toJavaScript(path: string): string {
  return stripTypeScriptTypes(withJavaScriptSpecifiers(readFileSync(path, "utf8")), { mode: "strip" });
}

function withJavaScriptSpecifiers(text: string): string {
  return text.replaceAll(RELATIVE_SPECIFIER, "$1$2.js$1");
}

function toJavaScriptName(path: string): string {
  return path.replace(/\.ts$/, ".js");
}

function writeFile(path: string, content: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** Most declarations describe the inside of the service, and no program can import them. */
function keepReachableDeclarations(out: string, entries: readonly string[]): void {
  const reached = new Set<string>();
  const pending = entries.map((entry) => join(out, entry.replace(/\.js$/, ".d.ts")));
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    const text = readFileSync(file, "utf8").replaceAll(RELATIVE_SPECIFIER, "$1$2.js$1");
    writeFileSync(file, text);
    for (const [, specifier = ""] of text.matchAll(IMPORTED_FILE))
      pending.push(join(dirname(file), specifier.replace(/\.js$/, ".d.ts")));
  }
  for (const path of globSync("src/**/*.d.ts", { cwd: out }))
    if (!reached.has(join(out, path))) rmSync(join(out, path));
}

function checkSpecifiers(out: string): void {
  const missing = globSync("{src,bin}/**/*.{js,d.ts}", { cwd: out }).flatMap((path) => {
    const file = join(out, path);
    return [...readFileSync(file, "utf8").matchAll(IMPORTED_FILE)]
      .map(([, specifier = ""]) => specifier)
      .filter((specifier) => !existsSync(join(dirname(file), specifier)))
      .map((specifier) => `${path} names ${specifier}, which is not part of the package`);
  });
  if (missing.length > 0) throw new Error(`${realpathSync(out)}:\n${missing.join("\n")}`);
}
