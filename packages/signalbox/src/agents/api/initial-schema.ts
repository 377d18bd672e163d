/**
 * What a new instance of a class finds in its database, beside the runtime's own tables: statements of SQL that are run once per process to make
 * the file such instances start as, and not once per instance. A static property under a registered symbol, so that it is found whichever copy of
 * the module the class came from, and subclasses have it, too.
 *
 * An instance that was created before its class had this schema does not get it later: the class must be able to add what is missing.
 */
export const INITIAL_SCHEMA: unique symbol = Symbol.for("signalbox.initial-schema") as never;

/** Empty for a class that adds nothing. */
export function initialSchemaOf(agentClass: { readonly name: string }): string {
  const schema = (agentClass as { readonly [INITIAL_SCHEMA]?: unknown })[INITIAL_SCHEMA] ?? "";
  if (typeof schema !== "string") throw new TypeError(`the initial schema of ${agentClass.name} is no text`);
  return schema;
}
