/** A JSON object: its members by name. */
export type Fields = Readonly<Record<string, unknown>>;

/** False for null and for arrays, which have no members by name. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
