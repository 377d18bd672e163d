/** The error for code of an instance that has left memory: a successor may be running, so the code can neither write nor send. */
export class InstanceGoneError extends Error {
  override readonly name = "InstanceGoneError";

  constructor(agent: string, name: string, at: number) {
    super(
      `${agent}/${name} left memory at ${new Date(at).toISOString()}, so this code can no longer write or send; keepAlive() and waitUntil() keep an instance in memory`,
    );
  }
}
