/** The Dockerfile in `deploy/docker`, as stages of instructions. An instruction that is not known here fails the test. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface Instruction {
  readonly word: string;
  /** With variables replaced. */
  readonly text: string;
}

export interface Stage {
  readonly name: string;
  readonly base: string;
  readonly instructions: readonly Instruction[];
  readonly user: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
  readonly volumes: readonly string[];
  readonly ports: readonly string[];
  readonly stopSignal: string;
}

const DOCKERFILE = join(import.meta.dirname, "../../deploy/docker/Dockerfile");

export function parseDockerfile(source = readFileSync(DOCKERFILE, "utf8")): Stage[] {
  const stages: Mutable<Stage>[] = [];
  const variables = new Map<string, string>();
  for (const { word, text } of readInstructions(source, variables)) {
    const stage = stages.at(-1);
    if (word === "ARG") {
      const [name = "", value = ""] = text.split("=");
      variables.set(name, value);
    } else if (word === "FROM") {
      const [, base = "", name = ""] = /^(\S+)(?: AS (\w+))?$/.exec(text) ?? [];
      stages.push({ ...EMPTY, base, name });
    } else if (stage === undefined) throw new Error(`${word} before FROM`);
    else apply(stage, { word, text });
  }
  return stages;
}

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

const EMPTY: Stage = {
  name: "",
  base: "",
  instructions: [],
  user: "0:0",
  folder: "/",
  environment: {},
  entrypoint: [],
  command: [],
  healthcheck: [],
  volumes: [],
  ports: [],
  stopSignal: "SIGTERM",
};

function apply(stage: Mutable<Stage>, { word, text }: Instruction): void {
  stage.instructions = [...stage.instructions, { word, text }];
  switch (word) {
    case "COPY":
    case "RUN":
    case "LABEL":
      return;
    case "WORKDIR":
      stage.folder = text;
      return;
    case "USER":
      stage.user = text;
      return;
    case "ENV":
      stage.environment = {
        ...stage.environment,
        ...Object.fromEntries(text.split(/\s+/).map((pair) => pair.split("="))),
      };
      return;
    case "VOLUME":
      stage.volumes = [...stage.volumes, text];
      return;
    case "EXPOSE":
      stage.ports = [...stage.ports, text];
      return;
    case "STOPSIGNAL":
      stage.stopSignal = text;
      return;
    case "HEALTHCHECK":
      stage.healthcheck = execForm(text.slice(text.indexOf(" CMD ") + 5));
      return;
    case "ENTRYPOINT":
      stage.entrypoint = execForm(text);
      return;
    case "CMD":
      stage.command = execForm(text);
      return;
    default:
      throw new Error(`the instruction ${word} is not known to this test`);
  }
}

/** Throws for the shell form: a shell would be process 1 and keep the signals. */
function execForm(text: string): string[] {
  return JSON.parse(text) as string[];
}

function readInstructions(source: string, variables: ReadonlyMap<string, string>): Iterable<Instruction> {
  const lines = source
    .split("\n")
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n");
  return (function* () {
    for (const line of lines) {
      const [, word = "", text = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
      yield {
        word,
        text: text.trim().replaceAll(/\$\{(\w+)\}/g, (_, name: string) => variables.get(name) ?? ""),
      };
    }
  })();
}
