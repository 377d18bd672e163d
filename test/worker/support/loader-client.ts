/** Questions to the program `loader`, which loads what it is sent. */

export interface Answer {
  readonly value?: unknown;
  readonly error?: string;
  readonly code?: unknown;
}

export interface LoaderClient {
  post(path: string, body: unknown): Promise<Answer>;
  /** Asks the default export of a program whose main module is this. */
  ask(main: string, question?: object): Promise<Answer>;
  /** The value of an expression inside of a program. */
  evaluate(expression: string, question?: object): Promise<Answer>;
}

export const HANDLER = `export default { async fetch(request, env) {
  return new Response([request.method, await request.text(), env.NAME].join(" ")); } };`;

export function askingLoader(url: () => string): LoaderClient {
  const post = async (path: string, body: unknown): Promise<Answer> => {
    const response = await fetch(url() + path, { method: "POST", body: JSON.stringify(body) });
    return (await response.json()) as Answer;
  };
  const ask = (main: string, question: object = {}) =>
    post("/", { modules: { "main.js": main }, ...question });
  const evaluate = (expression: string, question: object = {}) => {
    const main = `import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint { async go(...args) { const { env, ctx } = this; return ${expression}; } }`;
    return ask(main, { method: "go", ...question });
  };
  return { post, ask, evaluate };
}
