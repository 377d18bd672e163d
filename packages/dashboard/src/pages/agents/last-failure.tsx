import { Time } from "../../components/time.tsx";
import type { InstanceFailure } from "./agent.ts";

/** The last error of the instance's code. */
export function LastFailure({ failure }: { readonly failure: InstanceFailure }) {
  const { at, kind, label, name, message, stack } = failure;
  return (
    <details className="panel last-failure" data-testid="last-failure">
      <summary>
        <span className="error-text">
          Last error: {name}: {message}
        </span>{" "}
        <span className="muted small nowrap">
          {label === kind ? kind : `${kind} ${label}`}, <Time at={at} />
        </span>
      </summary>
      {stack === null ? (
        <p className="muted small">The stack was not kept.</p>
      ) : (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard
        <pre className="payload" tabIndex={0} role="region" aria-label="Stack">
          {stack}
        </pre>
      )}
    </details>
  );
}
