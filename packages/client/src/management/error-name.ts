import { ERROR_TABLE, type ErrorEntry, type ErrorName } from "@signalbox/protocol";

const NAMES: ReadonlyMap<number, ErrorName> = new Map(
  Object.entries(ERROR_TABLE).map(([name, entry]: [string, ErrorEntry]) => [entry.code, name as ErrorName]),
);

/** The name of a code in the service's error table. */
export function errorName(code: number): ErrorName | undefined {
  return NAMES.get(code);
}
