/** `signalbox init`: creates a project. The same as `npm create signalbox`, for those who have installed Signalbox already. */
import { type Command, UsageError } from "./command.ts";

export const init: Command = {
  words: ["init"],
  positionals: ["[folder]"],
  summary: "Create a project: an agent, its test, a configuration and a tsconfig. Replaces no file.",
  options: [{ name: "yes", summary: "do not ask; without a folder, the current one" }],
  async run(context) {
    // On demand: no other command needs it.
    const { askFolder, createProject, describeProject, ProjectError } = await import("create-signalbox");
    try {
      const folder =
        context.positionals[0] ?? (await askFolder(".", context.hasSwitch("yes") || context.isJson));
      const project = createProject(folder, context.workingFolder);
      context.print(project, () => describeProject(project, context.workingFolder));
    } catch (error) {
      if (!(error instanceof ProjectError)) throw error;
      throw new UsageError(error.message, { cause: error });
    }
  },
};
