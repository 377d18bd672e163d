/** What a person reads after the project was created: the files, and the next commands. */
import { relative } from "node:path";
import type { CreatedProject } from "./create-project.ts";

const PURPOSES: Readonly<Record<string, string>> = {
  "agents.ts": "an agent: one instance per device, with state, a schedule and a callable method",
  "agents.test.ts": "its test, with webhooks and a clock that the test moves",
  "signalbox.config.ts": "the configuration: the agent's file, and the webhooks that it receives",
};

export function describeProject(
  { folder, files, hasOwnNode }: CreatedProject,
  workingFolder: string,
): string {
  const path = relative(workingFolder, folder);
  const width = Math.max(...files.map((file) => file.length));
  const lines = files.map((file) => `  ${file.padEnd(width)}  ${PURPOSES[file] ?? ""}`.trimEnd());
  const steps = [
    ...(path === "" ? [] : [`cd ${quote(path)}`]),
    "npm install",
    "npm run dev       # the service; restarts when a file changes",
    "npm test          # the agent's test",
    "npm run check     # types",
  ];
  return [
    `Created a project in ${folder}:`,
    ...lines,
    "",
    ...(hasOwnNode
      ? [
          "This Node is older than 24, which Signalbox needs, so the project installs its own. npm warns of the older one (EBADENGINE); that is harmless.",
          "",
        ]
      : []),
    "Next:",
    ...steps.map((step) => `  ${step}`),
    "",
  ].join("\n");
}

function quote(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
