import { CodeBlock } from "../../components/code-block.tsx";
import { useTrafficOrigin } from "../../session/session.ts";
import { hintFor } from "./setup-hints.ts";
import type { Source } from "./webhook.ts";

/** The steps to receive deliveries from a source. */
export function SourceSetup({ source, isOpen }: { readonly source: Source; readonly isOpen: boolean }) {
  const hint = hintFor(source.kind);
  const endpointUrl = useTrafficOrigin() + source.path;
  const setSecret = (
    <li key="secret">
      <h3>{hint.secretFrom === "user" ? "Create a secret" : "Set the secret"}</h3>
      {source.secrets > 0 ? (
        <p className="muted">
          Done: <code>{source.secret_variable}</code> is set
          {source.secrets > 1 && ` (${source.secrets} active, for rotation)`}.
        </p>
      ) : (
        <>
          <p className="muted">
            {hint.secretFrom === "user"
              ? "Append a long random secret to a file, and restart the service with --env-file .env:"
              : "Copy the secret from the sender to the environment of the service (or to --env-file) and restart the service:"}
          </p>
          <CodeBlock
            label="Secret variable"
            isWrapped
            code={
              hint.secretFrom === "user"
                ? // Not the variable alone: in a file, $(…) would be the secret itself.
                  `echo "${source.secret_variable}=$(openssl rand -hex 32)" >> .env`
                : `${source.secret_variable}='…'`
            }
          />
        </>
      )}
    </li>
  );
  const registerEndpoint = (
    <li key="endpoint">
      <h3>Register the endpoint URL</h3>
      <p className="muted">{hint.where}</p>
      <CodeBlock label="Endpoint URL" code={endpointUrl} isWrapped />
      {hint.note !== undefined && <p className="muted">{hint.note}</p>}
      <p className="muted small">
        The sender must be able to reach this URL. If the service is in a private network, use a tunnel or a
        reverse proxy.
      </p>
    </li>
  );
  return (
    <details className="panel" open={isOpen}>
      <summary>
        <h2>Setup</h2>
      </summary>
      <ol className="steps">
        {hint.secretFrom === "user" ? [setSecret, registerEndpoint] : [registerEndpoint, setSecret]}
        <li>
          <h3>Check the routing</h3>
          <p className="muted">
            Signature: {source.scheme}
            {source.window_seconds !== null && `, valid for ${source.window_seconds / 60} min`}.{" "}
            {source.entity.length > 0 ? (
              <>
                The entity is read from{" "}
                {source.entity.map((rule, i) => (
                  <span key={rule}>
                    {i > 0 && ", or else "}
                    <code>{rule}</code>
                  </span>
                ))}
                . Each entity has its own instance of <code>{source.agent}</code>.
              </>
            ) : (
              <>
                The entity is part of the URL: <code>{source.path}/my-entity</code>.
              </>
            )}
          </p>
        </li>
      </ol>
    </details>
  );
}
