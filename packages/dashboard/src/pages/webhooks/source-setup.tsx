import { CodeBlock } from "../../components/code-block.tsx";
import { useTrafficOrigin } from "../../session/session.ts";
import { hintFor } from "./setup-hints.ts";
import type { Source } from "./webhook.ts";

/** How deliveries of a source get here, step by step. */
export function SourceSetup({ source }: { readonly source: Source }) {
  const hint = hintFor(source.kind);
  const address = useTrafficOrigin() + source.path;
  const setSecret = (
    <li key="secret">
      <h3>{hint.secretFrom === "you" ? "Choose a secret" : "Take over the secret"}</h3>
      {source.secrets > 0 ? (
        <p className="muted">
          Done: <code>{source.secret_variable}</code> is set
          {source.secrets > 1 && ` (${source.secrets} active, for rotation)`}.
        </p>
      ) : (
        <>
          <p className="muted">
            {hint.secretFrom === "you"
              ? "Set it in the service's environment (or --env-file) and start again. Any long random text will do:"
              : "Put what the provider shows into the service's environment (or --env-file) and start again:"}
          </p>
          <CodeBlock
            label="Setting the secret"
            code={
              hint.secretFrom === "you"
                ? `${source.secret_variable}=$(openssl rand -hex 32)`
                : `${source.secret_variable}='…'`
            }
          />
        </>
      )}
    </li>
  );
  const tellProvider = (
    <li key="address">
      <h3>Give the sender this address</h3>
      <p className="muted">{hint.where}</p>
      <CodeBlock label="Address of the source" code={address} />
      {hint.note !== undefined && <p className="muted">{hint.note}</p>}
      <p className="muted small">
        The provider must be able to reach it: behind a private address, put a tunnel or a proxy in front.
      </p>
    </li>
  );
  return (
    <section className="panel" aria-labelledby="setup-title">
      <h2 id="setup-title">Setup</h2>
      <ol className="steps">
        {hint.secretFrom === "you" ? [setSecret, tellProvider] : [tellProvider, setSecret]}
        <li>
          <h3>Know where events go</h3>
          <p className="muted">
            Signature: {source.scheme}
            {source.window_seconds !== null && `, at most ${source.window_seconds / 60} min old`}.{" "}
            {source.entity.length > 0 ? (
              <>
                The entity comes from{" "}
                {source.entity.map((rule, i) => (
                  <span key={rule}>
                    {i > 0 && ", else "}
                    <code>{rule}</code>
                  </span>
                ))}
                ; each has its own instance of <code>{source.agent}</code>.
              </>
            ) : (
              <>
                The address names the entity: <code>{source.path}/my-entity</code>.
              </>
            )}
          </p>
        </li>
      </ol>
    </section>
  );
}
