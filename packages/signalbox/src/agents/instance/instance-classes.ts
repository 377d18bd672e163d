/** The classes of instances by their names in the catalog: agents, and the objects of a worker. */
import type { AgentDefinition } from "./agent-definition.ts";
import type { Resident, ResidentDefinition } from "./resident.ts";

export type AnyDefinition = AgentDefinition | ResidentDefinition<Resident>;

export class InstanceClasses {
  /** Filled at the start. */
  readonly agents = new Map<string, AgentDefinition>();
  readonly #objects = new Map<string, ResidentDefinition<Resident>>();

  addObjects(definition: ResidentDefinition<Resident>): void {
    this.#objects.set(definition.kebab, definition);
  }

  names(): string[] {
    return [...this.agents.keys(), ...this.#objects.keys()];
  }

  find(name: string): AnyDefinition | undefined {
    return this.agents.get(name) ?? this.#objects.get(name);
  }
}
