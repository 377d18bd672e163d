/**
 * Merges an edit into what the server has now: members that were not edited keep their present values, such as credit that was added
 * while a form was open. Throws if an edited member was changed to another value by somebody else, or if all of it was removed.
 */
export function mergeEdit<Value extends object>(
  before: Value,
  edited: Value,
  now: Value | undefined,
  title: string,
): Value {
  if (now === undefined) throw new Error(`The ${title} was removed meanwhile. Nothing was saved.`);
  const merged = new Map<string, unknown>(Object.entries(now));
  for (const name of new Set([...Object.keys(before), ...Object.keys(edited)])) {
    const [was, is, wanted] = [before, now, edited].map(
      (value) => (value as Readonly<Record<string, unknown>>)[name],
    );
    if (isSame(was, wanted)) continue;
    if (!isSame(was, is) && !isSame(is, wanted)) {
      throw new Error(
        `The ${title} was changed meanwhile: ${name} is now ${JSON.stringify(is) ?? "not set"}. Nothing was saved; close this form, check the present value and edit it again.`,
      );
    }
    if (wanted === undefined) merged.delete(name);
    else merged.set(name, wanted);
  }
  return Object.fromEntries(merged) as Value;
}

export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
