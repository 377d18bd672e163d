/**
 * `npm run build`: builds the published packages, each in its `dist/` with its own package.json.
 *
 * In the repository, `exports` names the TypeScript sources, so they run without a build. Node does not strip types below node_modules, so the
 * published files are JavaScript. The layout is the same; only the file extensions change. See docs/decisions/0001.
 */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const PUBLISHED = ["protocol", "translate", "signalbox", "client"];

for (const name of PUBLISHED) build(join(ROOT, "packages", name));

// The service expects the dashboard beside its compiled files.
run(process.execPath, [join(ROOT, "scripts/build-dashboard.ts"), "--if-stale"]);
cpSync(join(ROOT, "packages/dashboard/dist"), join(ROOT, "packages/signalbox/dist/src/dashboard-app"), {
  recursive: true,
});

function build(folder: string): void {
  const out = join(folder, "dist");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const config = join(out, "tsconfig.json");
  writeFileSync(
    config,
    JSON.stringify({
      extends: "../../../tsconfig.build.json",
      compilerOptions: { rootDir: "../src", outDir: "src" },
      include: ["../src/**/*.ts"],
      exclude: [
        "../src/**/*.test.ts",
        "../src/**/*-contract.ts",
        "../src/**/*-fixture.ts",
        "../src/**/*-model.ts",
        "../src/**/contract/**",
      ],
    }),
  );
  run("tsc", ["-p", config]);
  rmSync(config);
  cpSync(join(folder, "src"), join(out, "src"), {
    recursive: true,
    filter: (path) => !basename(path).includes(".") || path.endsWith(".sql"),
  });
  if (existsSync(join(folder, "bin"))) {
    cpSync(join(folder, "bin"), join(out, "bin"), { recursive: true });
    const file = join(out, "bin", "signalbox.js");
    writeFileSync(file, toJavaScriptPath(readFileSync(file, "utf8")));
  }
  cpSync(join(ROOT, "LICENSE"), join(out, "LICENSE"));
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, unknown>;
  delete manifest["devDependencies"];
  manifest["exports"] = JSON.parse(toJavaScriptPath(JSON.stringify(manifest["exports"]))) as unknown;
  writeFileSync(join(out, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  run("publint", [out, "--strict"]);
}

function toJavaScriptPath(text: string): string {
  return text.replaceAll(/(src\/[\w/.-]+)\.ts/g, "$1.js");
}

function run(tool: string, args: readonly string[]): void {
  const { status } = spawnSync(tool, args, { stdio: "inherit", cwd: ROOT });
  if (status !== 0) process.exit(status ?? 1);
}
