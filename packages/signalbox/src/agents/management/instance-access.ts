/** What the management routes have in common: the agent and the instance that a path names. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { PathParams } from "../../http/route.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { InstanceReader } from "../instance/inspection.ts";
import type { CatalogEntry, InstanceCatalog } from "../instance/instance-catalog.ts";
import { INSTANCE_PROBLEMS, MAX_CURSOR } from "../instance/instance-pages.ts";
import type { LiveAgent } from "../instance/live-agent.ts";
import type { INSTANCE } from "./instance-route.ts";
import type { ManagedObjects } from "./managed-objects.ts";

const PAGE_SIZE = 100;

export const pageQuery = z.object({
  cursor: z.string().max(MAX_CURSOR).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(PAGE_SIZE),
});

/** What counts as a problem: a turn that runs longer than `stuck_seconds`, and an error of the last `within` seconds. */
export const problemQuery = {
  problem: z.enum(["any", ...INSTANCE_PROBLEMS]).optional(),
  stuck_seconds: z.coerce.number().min(0).max(86_400).default(10),
  within: z.coerce
    .number()
    .int()
    .min(1)
    .max(366 * 86_400)
    .default(86_400),
};

export class InstanceAccess {
  readonly #definitions: ReadonlyMap<string, AgentDefinition>;
  readonly #directory: Directory;
  readonly #catalog: InstanceCatalog;
  readonly #objects: ManagedObjects;

  constructor(
    definitions: ReadonlyMap<string, AgentDefinition>,
    directory: Directory,
    catalog: InstanceCatalog,
    objects: ManagedObjects,
  ) {
    this.#objects = objects;
    this.#definitions = definitions;
    this.#directory = directory;
    this.#catalog = catalog;
  }

  /** The name in the path of an agent or of an object class. Throws `agent_not_found`. */
  agent(name: string): string {
    return this.isObjectClass(name) ? name : this.definition(name).kebab;
  }

  /** True for the name of a class of the worker program. */
  isObjectClass(name: string): boolean {
    return this.#objects.classes().some(({ agent }) => agent === name);
  }

  /** Throws `agent_not_found`. */
  definition(name: string): AgentDefinition {
    const definition = this.#definitions.get(name);
    if (definition === undefined) throw new SignalboxError("agent_not_found");
    return definition;
  }

  /** The instance that the path names, whether or not it exists. Throws `agent_not_found`. */
  ref(params: PathParams<typeof INSTANCE>): InstanceRef {
    return { account: params.account_id, agent: this.agent(params.agent_name), name: params.instance_name };
  }

  /** Throws `agent_instance_not_found`. */
  async entry(ref: InstanceRef): Promise<CatalogEntry> {
    await this.#catalog.flush();
    const entry = await this.#catalog.find(ref);
    if (entry === undefined) throw new SignalboxError("agent_instance_not_found");
    return entry;
  }

  /** Reads the instance without loading it. */
  async read<T>(ref: InstanceRef, label: string, work: (reader: InstanceReader) => T): Promise<T> {
    return this.#directory.read(await this.entry(ref), label, work);
  }

  /** Changes the instance in one of its turns, so that the instance runs what becomes due. */
  async change<T>(ref: InstanceRef, label: string, work: (live: LiveAgent) => T): Promise<T> {
    const entry = await this.entry(ref);
    return this.#directory.change(this.definition(ref.agent), entry, label, work);
  }
}
