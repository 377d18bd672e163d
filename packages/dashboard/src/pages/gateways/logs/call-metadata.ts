/** The metadata of a call as texts; empty if it has none or they cannot be read. */
export function parseMetadata(metadata: string | undefined): Record<string, string> {
  try {
    const value: unknown = metadata === undefined ? null : JSON.parse(metadata);
    if (typeof value !== "object" || value === null) return {};
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        typeof item === "string" ? item : JSON.stringify(item),
      ]),
    );
  } catch {
    return {};
  }
}
