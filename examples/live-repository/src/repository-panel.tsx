import { useAgent } from "@signalbox/client/react";
import type { RepositoryAgent } from "../agents.ts";

/** One repository: one instance, one connection. No `url` and no token, because the page's server forwards `/agents` to Signalbox. */
export function RepositoryPanel({ repository }: { repository: string }) {
  const { state, status, error } = useAgent<RepositoryAgent>({
    agent: "RepositoryAgent",
    name: instanceName(repository),
  });
  return (
    <section aria-label={repository}>
      <h2>{repository}</h2>
      <p className="status" data-status={status}>
        {status === "open"
          ? countText(state?.eventCount ?? 0)
          : `${status}${error ? `: ${error.message}` : ""}`}
      </p>
      <p className="types">
        {Object.entries(state?.countByType ?? {}).map(([type, count]) => (
          <span key={type}>
            {type} {count}
          </span>
        ))}
      </p>
      <ol>
        {state?.recent.map((event) => (
          <li key={event.id}>
            <b>{event.type}</b> {event.title}
            <small>
              {event.actor} · {new Date(event.timestamp).toLocaleTimeString()}
            </small>
          </li>
        ))}
      </ol>
      {state?.recent.length === 0 && <p>No events yet. The next push, issue or comment appears here.</p>}
    </section>
  );
}

/** The instance name of a repository: its full name in lower case, with `-` for `/`. */
function instanceName(repository: string): string {
  return repository.toLowerCase().replace("/", "-");
}

function countText(count: number): string {
  return `${count} ${count === 1 ? "event" : "events"}`;
}
