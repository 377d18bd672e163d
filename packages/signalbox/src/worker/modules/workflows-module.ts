/** The module `cloudflare:workflows`. */

/** Thrown by a step: the step fails at once, whatever retries it has. */
export class NonRetryableError extends Error {
  override readonly name: string;

  constructor(message: string, name = "NonRetryableError") {
    super(message);
    this.name = name;
  }
}
