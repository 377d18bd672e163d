/** `npm create signalbox [folder]`: an error is one line on standard error, with exit code 1, or 2 for a wrong command line. */
import { parseArgs } from "node:util";
import { askFolder } from "./ask-folder.ts";
import { createProject, ProjectError } from "./create-project.ts";
import { describeProject } from "./describe-project.ts";
import { ownVersion } from "./project-manifest.ts";

const DEFAULT_FOLDER = "signalbox-app";
const HELP = `Create a Signalbox project: an agent, its test, a configuration and a tsconfig.

Usage: npm create signalbox [folder] [-- options]

  --yes      do not ask; the folder is ${DEFAULT_FOLDER} if none is given
  --version  show the version
  --help     show this help
`;

export async function runCreate(args: readonly string[]): Promise<number> {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        yes: { type: "boolean", short: "y" },
        version: { type: "boolean", short: "v" },
        help: { type: "boolean", short: "h" },
      },
    });
    if (parsed.positionals.length > 1) throw new Error("give one folder");
  } catch (error) {
    return fail(error, 2);
  }
  const { values, positionals } = parsed;
  if (values.help === true) process.stdout.write(HELP);
  else if (values.version === true) process.stdout.write(`${ownVersion()}\n`);
  else {
    try {
      const folder = positionals[0] ?? (await askFolder(DEFAULT_FOLDER, values.yes === true));
      process.stdout.write(describeProject(createProject(folder, process.cwd()), process.cwd()));
    } catch (error) {
      if (!(error instanceof ProjectError)) throw error;
      return fail(error, 1);
    }
  }
  return 0;
}

function fail(error: unknown, code: number): number {
  process.stderr.write(`create-signalbox: ${error instanceof Error ? error.message : String(error)}\n`);
  return code;
}
