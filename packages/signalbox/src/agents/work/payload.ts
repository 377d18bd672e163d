/** Payloads of queue items and schedules are stored as JSON; undefined is stored as NULL. */
export function toStoredPayload(payload: unknown): string | null {
  if (payload === undefined) return null;
  const json = JSON.stringify(payload);
  if (json === undefined) throw new TypeError("the payload is not JSON: it is a function or a symbol");
  return json;
}

export function fromStoredPayload(stored: string | null): unknown {
  return stored === null ? undefined : JSON.parse(stored);
}
