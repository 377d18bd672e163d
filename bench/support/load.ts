/** Load on one server: the generator in C where it can be compiled, else the one in Node.js. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { nativePrograms, writeRecords } from "./native-programs.ts";
import { type GeneratorResult, type LoadOptions, type LoadResult, runLoadInNode } from "./node-load.ts";
import { nextSequence } from "./requests.ts";

const run = promisify(execFile);
const files = new WeakMap<readonly Buffer[], string>();
let fileCount = 0;

export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const programs = nativePrograms();
  const result = programs === null ? await runLoadInNode(options) : await runProgram(programs.load, options);
  if (result.unexpected > 0)
    throw new Error(
      `${result.unexpected} of ${result.requests} responses had an unexpected status, the first ${result.unexpectedStatus}`,
    );
  return result;
}

async function runProgram(program: string, options: LoadOptions): Promise<GeneratorResult> {
  const { port, connections, durationMs, maxRequests = 0, status = 0, requests } = options;
  let file = files.get(requests);
  if (file === undefined) {
    file = writeRecords(`requests-${fileCount++}`, requests);
    files.set(requests, file);
  }
  const args = [port, connections, Math.round(durationMs), maxRequests, status, nextSequence(0), file];
  const { stdout } = await run(program, args.map(String));
  const result = JSON.parse(stdout) as GeneratorResult;
  nextSequence(result.requests);
  return result;
}
