/** `tracing` of `cloudflare:workers`. Spans of programs are not recorded: every one is a span that is not traced, which programs must expect there too. */

class Span {
  readonly isTraced = false;

  setAttribute(_key: string, _value: unknown): this {
    return this;
  }

  setAttributes(_attributes: Readonly<Record<string, unknown>>): this {
    return this;
  }

  recordException(_exception: unknown): void {}

  updateName(_name: string): this {
    return this;
  }

  setStatus(_status: unknown): this {
    return this;
  }

  end(): void {}
}

type WithSpan<T, A extends unknown[]> = (span: Span, ...args: A) => T;

export const tracing = {
  Span,
  /** Runs the function with a span that ends with it. */
  enterSpan: <T, A extends unknown[]>(_name: string, work: WithSpan<T, A>, ...args: A): T =>
    work(new Span(), ...args),
  /** Runs the function with a span that the program ends. */
  startActiveSpan: <T, A extends unknown[]>(_name: string, work: WithSpan<T, A>, ...args: A): T =>
    work(new Span(), ...args),
  startSpan: (_name: string): Span => new Span(),
  getActiveSpan: (): undefined => undefined,
};
