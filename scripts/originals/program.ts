/** Starts a program of a wrangler file and asks it: the path `/`, each of its object classes, and what `own-questions.ts` has for it. */
import { dirname, join } from "node:path";
import { kebabCase } from "@signalbox/protocol";
import { ownQuestionsOf } from "./own-questions.ts";
import { askMcp } from "./mcp-questions.ts";
import { askAgent, askCard, askChat, askPath } from "./questions.ts";
import { type Servers, startServers } from "./servers.ts";
import { readWrangler } from "./wrangler-files.ts";

export interface ProgramReport {
  /** Null: the file names no program, it is for assets or settings only. */
  readonly seconds: number | null;
  readonly answers: readonly string[];
  readonly failures: readonly string[];
}

type Question = readonly [name: string, ask: () => Promise<string | null>];

/** Rejects if the program does not start. */
export async function runProgram(path: string): Promise<ProgramReport> {
  const wrangler = await readWrangler(path);
  if (wrangler.main === undefined) return { seconds: null, answers: [], failures: [] };
  const folder = dirname(path);
  const since = performance.now();
  const { env } = ownQuestionsOf(path) ?? {};
  const servers = await startServers(folder, join(folder, wrangler.main), path, env);
  try {
    const seconds = Math.round((performance.now() - since) / 100) / 10;
    const classes = wrangler.durable_objects?.bindings?.map(({ name }) => name) ?? [];
    const questions = questionsFor(servers, [...new Set(classes)], path);
    const answers: string[] = [];
    const failures: string[] = [];
    for (const [name, ask] of questions) {
      try {
        const answer = await ask();
        if (answer !== null) answers.push(`${name}: ${answer}`);
      } catch (error) {
        failures.push(`${name}: ${String(error instanceof Error ? error.message : error)}`);
      }
    }
    return { seconds, answers, failures };
  } finally {
    await servers.stop();
  }
}

/** In a cluster, each question goes to another node. */
function questionsFor({ urls }: Servers, bindings: readonly string[], path: string): Question[] {
  let next = 0;
  const url = () => urls[next++ % urls.length] ?? "";
  const own = ownQuestionsOf(path);
  return [
    ["/", () => askPath(`${url()}/`)],
    ...["/mcp", ...(own?.mcp ?? [])].map((at): Question => [at, () => askMcp(url() + at)]),
    ["card", () => askCard(url())],
    ...bindings.flatMap((name): Question[] => {
      const agent = `/agents/${kebabCase(name)}/asked`;
      return [
        [name, () => askAgent(url() + agent)],
        [`${name} chat`, () => askChat(url() + agent)],
      ];
    }),
    ...(own?.agents ?? []).flatMap((at): Question[] => [
      [at, () => askAgent(url() + at)],
      [`${at} chat`, () => askChat(url() + at)],
    ]),
    ...(own?.requests ?? []).map(({ path: at, ...init }): Question => [at, () => askPath(url() + at, init)]),
  ];
}
