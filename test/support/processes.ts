/** Requests to, and processes of, a server that has several. */
import { readFileSync } from "node:fs";
import { Agent, request as send } from "node:http";
import { join } from "node:path";

export interface PlainAnswer {
  readonly status: number;
  readonly text: string;
}

/** On a connection of its own. */
export function requestOnce(url: string, path: string, token?: string): Promise<PlainAnswer> {
  return requestWith(false, url + path, token);
}

/** One connection that is used again and again; another one only after the server has announced the end of it. */
export class KeptConnection {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  request(path: string, token?: string): Promise<PlainAnswer> {
    return requestWith(this.#agent, this.#url + path, token);
  }

  close(): void {
    this.#agent.destroy();
  }
}

function requestWith(agent: Agent | false, url: string, token: string | undefined): Promise<PlainAnswer> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    send(url, { agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    })
      .on("error", reject)
      .end();
  });
}

export function pidOf(dataDir: string, process: number): number {
  const file = readFileSync(join(dataDir, `process-${process}`, "server.json"), "utf8");
  return (JSON.parse(file) as { pid: number }).pid;
}

/** In the order of their numbers. */
export function pidsOf(dataDir: string, count: number): number[] {
  return Array.from({ length: count }, (_, index) => pidOf(dataDir, index + 1));
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The sum of the series of a metric that have these labels; NaN if there is none. */
export function metricIn(text: string, name: string, labels: Readonly<Record<string, string>>): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const found = text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) && wanted.every((part) => line.includes(part)));
  if (found.length === 0) return Number.NaN;
  return found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
