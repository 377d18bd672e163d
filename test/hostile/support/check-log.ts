/**
 * Fails if a server in this process has logged an error since the last check, or if a shared prototype was polluted.
 */
export function checkLog(logs: Record<string, unknown>[], expectedErrors: readonly string[] = []): void {
  const error = logs.find(
    ({ level, err }) =>
      (level === "error" || level === "fatal") &&
      !expectedErrors.includes(String((err as { type?: unknown } | undefined)?.type)),
  );
  logs.length = 0;
  if (error !== undefined) throw new Error(`logged: ${JSON.stringify(error).slice(0, 2000)}`);
  const polluted = Object.keys(Object.prototype)[0] ?? Object.keys(Array.prototype)[0];
  if (polluted !== undefined) throw new Error(`a prototype has gained ${polluted}`);
}
