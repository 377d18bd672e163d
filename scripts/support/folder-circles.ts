/**
 * Finds folders that need each other. In each folder, its entries (folders and files) are compared: a folder needs what any file in it imports, types
 * included. A circle means that neither of two rooms can be read, tested or moved without the other, though no two files import each other.
 */
import { dirname, join, relative, sep } from "node:path";

export interface FolderCircle {
  /** The folder whose entries form the circle. */
  readonly folder: string;
  readonly entries: readonly string[];
  /** The imports between them, as `file → file`. */
  readonly imports: readonly string[];
}

/** Static, re-exporting and dynamic imports, and `import("…")` as a type. */
const IMPORTS = /\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g;

/** Takes the text of each file by its path below `root`. */
export function findFolderCircles(root: string, files: ReadonlyMap<string, string>): FolderCircle[] {
  const folders = new Map<string, Map<string, Map<string, string[]>>>();
  for (const [path, text] of files) {
    for (const [, target = ""] of text.matchAll(IMPORTS)) {
      const imported = join(dirname(path), target);
      if (!files.has(imported)) continue;
      const from = relative(root, path).split(sep);
      const to = relative(root, imported).split(sep);
      const depth = from.findIndex((name, i) => name !== to[i]);
      // A file that imports itself.
      if (depth === -1) continue;
      const entries = getOrAdd(folders, from.slice(0, depth).join("/"), () => new Map());
      const needs = getOrAdd(entries, from[depth] ?? "", () => new Map<string, string[]>());
      getOrAdd<string, string[]>(needs, to[depth] ?? "", () => []).push(
        `${from.join("/")} → ${to.join("/")}`,
      );
    }
  }
  return [...folders].flatMap(([folder, needs]) =>
    circlesOf(needs).map((entries) => ({
      folder,
      entries,
      imports: entries.flatMap((a) => entries.flatMap((b) => needs.get(a)?.get(b) ?? [])),
    })),
  );
}

/** Sets of more than one entry in which each reaches each. */
function circlesOf(needs: ReadonlyMap<string, ReadonlyMap<string, unknown>>): string[][] {
  const reached = new Map([...needs.keys()].map((entry) => [entry, reachableFrom(entry, needs)]));
  const circles = new Map<string, string[]>();
  for (const [entry, others] of reached) {
    if (!others.has(entry)) continue;
    const circle = [...others].filter((other) => reached.get(other)?.has(entry) === true).sort();
    circles.set(circle.join(), circle);
  }
  return [...circles.values()];
}

function reachableFrom(start: string, needs: ReadonlyMap<string, ReadonlyMap<string, unknown>>): Set<string> {
  const reached = new Set<string>();
  const open = [start];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    for (const next of needs.get(entry)?.keys() ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(next);
    }
  }
  return reached;
}

function getOrAdd<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}
