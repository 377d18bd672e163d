/**
 * The SQL schema that a new instance of a class starts with, beside the runtime's own tables. The statements run once per process, to create
 * the file that new instances are copied from. The schema is a static property under a registered symbol, so that any copy of this module
 * finds it; subclasses inherit it.
 *
 * An instance that was created before its class had the schema does not receive it later: the class must be able to add what is missing.
 */
export const INITIAL_SCHEMA: unique symbol = Symbol.for("signalbox.initial-schema") as never;

/** Empty for a class without an initial schema. */
export function initialSchemaOf(agentClass: { readonly name: string }): string {
  const schema = (agentClass as { readonly [INITIAL_SCHEMA]?: unknown })[INITIAL_SCHEMA] ?? "";
  if (typeof schema !== "string")
    throw new TypeError(`the initial schema of ${agentClass.name} is not a string`);
  return schema;
}
