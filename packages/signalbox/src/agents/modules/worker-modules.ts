/**
 * The workers whose programs are loaded. Each further worker has modules of its own, also of files that another one imports: their URLs have the name of the worker as a
 * parameter, which the loader passes on from each module to those that it imports. Modules of Node, of this package, and those that are loaded by `require` are shared.
 */
import { WORKER_PARAMETER } from "../objects/worker-binding.ts";
import type { ImportRule } from "./raw-modules.ts";

/** What the loader needs to know about a worker. */
export interface WorkerModules {
  /** URLs of the modules `cloudflare:<name>`. */
  readonly platform: Readonly<Record<string, string>>;
  readonly rules: readonly ImportRule[];
  /** Names that are replaced by expressions in the program's own files. */
  readonly define: Readonly<Record<string, string>>;
  /** The folder that the rules' patterns are relative to. */
  readonly folder: string;
}

/** The URL of a module as the worker has it; the first worker has an empty name. */
export function urlFor(worker: string, url: string): string {
  if (worker === "" || !url.startsWith("file:")) return url;
  const marked = new URL(url);
  marked.searchParams.set(WORKER_PARAMETER, worker);
  return marked.href;
}

/** The worker that a module belongs to. */
export function workerOfUrl(url: string | undefined): string {
  if (url === undefined || !url.includes(WORKER_PARAMETER)) return "";
  return new URL(url).searchParams.get(WORKER_PARAMETER) ?? "";
}
