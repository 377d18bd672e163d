/** Addresses of the management interface: names as path segments, and query parameters. */

/** A name that cannot be a path segment: empty, or a dot segment, which URL parsers remove (RFC 3986, section 5.2.4). */
export class InvalidNameError extends TypeError {
  override readonly name = "InvalidNameError";
}

export type QueryValue = string | number | boolean | null | undefined;
/** A list repeats the parameter; null and undefined omit it. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[]>>;

/** Builds a path with encoded names: `` pathOf`/accounts/${id}` ``. Throws an `InvalidNameError`. */
export function pathOf(strings: TemplateStringsArray, ...names: readonly string[]): string {
  return String.raw({ raw: strings }, ...names.map(encodeName));
}

/** Appends the parameters to a path, which may have a query already. */
export function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? (value as readonly QueryValue[]) : [value as QueryValue]) {
      if (one !== null && one !== undefined) parameters.append(name, String(one));
    }
  }
  return parameters.size === 0 ? path : `${path}${path.includes("?") ? "&" : "?"}${parameters.toString()}`;
}

function encodeName(name: string): string {
  if (name === "" || name === "." || name === "..")
    throw new InvalidNameError(`"${name}" is not a valid name`);
  return encodeURIComponent(name);
}
