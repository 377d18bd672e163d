/**
 * package.json of a new project.
 *
 * In a clone of the repository (the sources are TypeScript there) the project depends on the clone: npm links it, and fetches nothing of
 * Signalbox. Elsewhere it depends on the published version. See packages/signalbox/src/cli/README.md.
 */
import { readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";

/** Versions that the project's check and tests were tried with. `test/packages` compares them with those of this repository. */
export const TYPESCRIPT = "^7.0.2";
export const NODE_TYPES = "^24.19.2";
const REQUIRED_NODE = 24;

export function projectManifest(
  name: string,
  folder: string,
  nodeVersion: string,
): { readonly content: object; readonly hasOwnNode: boolean } {
  const hasOwnNode = Number(nodeVersion.split(".")[0]) < REQUIRED_NODE;
  const content = {
    name,
    version: "0.0.0",
    private: true,
    type: "module",
    scripts: {
      dev: "signalbox dev",
      start: "signalbox serve",
      // Compiles decorators, which Node does not know, and then runs all files *.test.ts. The option is for the lines of tests that fail.
      test: "node --enable-source-maps --import signalbox/testing/register --test",
      check: "tsc",
    },
    dependencies: {
      // Scripts of npm then use this Node instead of the installed one.
      ...(hasOwnNode ? { node: `^${REQUIRED_NODE}.0.0` } : {}),
      signalbox: import.meta.url.endsWith(".ts") ? `file:${pathOfClone(folder)}` : `^${ownVersion()}`,
    },
    devDependencies: { "@types/node": NODE_TYPES, typescript: TYPESCRIPT },
    engines: { node: hasOwnNode ? ">=20" : `>=${REQUIRED_NODE}` },
    // Install scripts that npm may run: both fetch or check a binary of this platform.
    allowScripts: { esbuild: true, ...(hasOwnNode ? { node: true } : {}) },
  };
  return { content, hasOwnNode };
}

/** As npm writes such a path: relative to the project, with slashes. */
function pathOfClone(folder: string): string {
  return relative(folder, join(import.meta.dirname, "../../signalbox")).replaceAll(sep, "/");
}

/**
 * The Node that runs the scripts of the project: that of npm. `npx signalbox init` itself may run on a newer one, which is installed beside
 * Signalbox.
 */
export function nodeOfScripts(userAgent = process.env["npm_config_user_agent"] ?? ""): string {
  return /\bnode\/v(\S+)/.exec(userAgent)?.[1] ?? process.versions.node;
}

/** All packages of a release have one version. */
export function ownVersion(): string {
  const manifest = new URL("../package.json", import.meta.url);
  return (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
}
