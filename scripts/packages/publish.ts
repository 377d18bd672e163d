/** Publishes packed packages with npm, each after those that it depends on. Can be repeated: what is published already is skipped. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { distributionTag } from "./release-problems.ts";

export interface PublishedArchive {
  readonly name: string;
  /** Path of the archive. */
  readonly file: string;
}

export interface Publication {
  readonly version: string;
  /** Default: npm's configuration. */
  readonly registry: string | null;
  /** A statement of the CI job about the source; registries of one's own do not take it. */
  readonly hasProvenance: boolean;
}

export interface PublishOptions {
  readonly folder: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly report: (line: string) => void;
}

/** False when npm has refused one. */
export async function publishAll(
  packed: readonly PublishedArchive[],
  publication: Publication,
  { folder, env = process.env, report }: PublishOptions,
): Promise<boolean> {
  const { version } = publication;
  for (const one of packed) {
    const view = ["view", `${one.name}@${version}`, "version", ...registryOf(publication)];
    // npm says on standard error that it is not there.
    const published = await npm(view, { cwd: folder, env, stdio: ["ignore", "pipe", "ignore"] });
    if (published.output.trim() === version) report(`${one.name}@${version} is published already`);
    else {
      const [, ...args] = publishCommand(one, publication);
      const { code } = await npm(args, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
      if (code !== 0) return false;
      report(`published ${one.name}@${version}`);
    }
  }
  return true;
}

export function publishCommand({ file }: PublishedArchive, publication: Publication): string[] {
  const { version, hasProvenance } = publication;
  const provenance = hasProvenance ? "--provenance" : "--no-provenance";
  const tag = ["--tag", distributionTag(version)];
  return ["npm", "publish", file, "--access", "public", provenance, ...tag, ...registryOf(publication)];
}

function registryOf({ registry }: Publication): string[] {
  return registry === null ? [] : ["--registry", registry];
}

async function npm(
  args: readonly string[],
  options: {
    readonly cwd: string;
    readonly env: NodeJS.ProcessEnv;
    readonly stdio: ["ignore", "pipe", "ignore" | "inherit"];
  },
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn("npm", args, options);
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}
