/** The members of a resource that differ before and after a change. */
export interface ChangedMember {
  readonly name: string;
  readonly before: string;
  readonly after: string;
}

const ABSENT = "–";

export function changedMembers(before: unknown, after: unknown): ChangedMember[] {
  const old = membersOf(before);
  const next = membersOf(after);
  const names = new Set([...old.keys(), ...next.keys()]);
  return [...names]
    .map((name) => ({ name, before: old.get(name) ?? ABSENT, after: next.get(name) ?? ABSENT }))
    .filter((member) => member.before !== member.after);
}

function membersOf(value: unknown): Map<string, string> {
  if (typeof value !== "object" || value === null) return new Map();
  return new Map(Object.entries(value).map(([name, member]) => [name, JSON.stringify(member)]));
}
