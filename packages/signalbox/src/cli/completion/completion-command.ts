/** `signalbox completion <shell>`: prints the script that a shell reads at its start. */
import { nearestName } from "../../core/nearest-name.ts";
import { type Command, UsageError } from "../command.ts";

export const completion: Command = {
  words: ["completion"],
  positionals: ["<bash|zsh|fish>"],
  summary: "Print the completion script of a shell, e.g. `source <(signalbox completion bash)` in ~/.bashrc.",
  options: [],
  async run(context) {
    const { SCRIPTS } = await import("./scripts.ts");
    const [shell = ""] = context.positionals;
    const script = SCRIPTS[shell];
    if (script === undefined) {
      const nearest = nearestName(shell, Object.keys(SCRIPTS));
      const hint = nearest === undefined ? "" : `; did you mean ${nearest}?`;
      throw new UsageError(`expected bash, zsh or fish, found "${shell}"${hint}`);
    }
    context.print({ shell, script }, (shown) => shown.script);
  },
};
