interface ErrorTextProps {
  readonly message: string;
  /** Null or absent if the service keeps none. */
  readonly stack?: string | null | undefined;
}

/** The error of a handler. Its stack opens on demand. */
export function ErrorText({ message, stack }: ErrorTextProps) {
  if (stack == null || stack === "") return <div className="error-text">{message}</div>;
  return (
    <details className="error-text">
      <summary>{message}</summary>
      <pre className="payload">{stack}</pre>
    </details>
  );
}
