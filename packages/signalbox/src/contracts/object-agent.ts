/** How a webhook source names an object of the worker where other sources name an agent: `object:Class`. */
const PREFIX = "object:";

export function objectAgent(className: string): string {
  return PREFIX + className;
}

/** The class of an object; null for the name of an agent. */
export function objectClassOf(agent: string): string | null {
  return agent.startsWith(PREFIX) ? agent.slice(PREFIX.length) : null;
}
