/** Asks for the folder of the new project, where a person can answer. */
import { createInterface } from "node:readline/promises";
import { ProjectError } from "./create-project.ts";

interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/** The default is the answer if the input is no terminal, or if `isQuiet`. Throws `ProjectError` on Ctrl-C and Ctrl-D. */
export async function askFolder(
  defaultFolder: string,
  isQuiet: boolean,
  { stdin, stderr }: Terminal = process,
): Promise<string> {
  if (isQuiet || stdin.isTTY !== true || stderr.isTTY !== true) return defaultFolder;
  // Not standard output, which may be redirected.
  const terminal = createInterface({ input: stdin, output: stderr });
  // Node 20 leaves the question without an answer then, and Node 24 rejects it.
  const closed = new Promise<never>((_, reject) => {
    terminal.once("close", () => reject(new Error("closed")));
  });
  // After an answer, nobody waits for it.
  closed.catch(() => undefined);
  try {
    const question = terminal.question(`Folder of the new project (${defaultFolder}): `);
    return (await Promise.race([question, closed])).trim() || defaultFolder;
  } catch (cause) {
    stderr.write("\n");
    throw new ProjectError("no folder was given; nothing was written", { cause });
  } finally {
    terminal.close();
  }
}
