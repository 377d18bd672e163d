import { useState } from "react";
import { CodeBlock } from "../../../components/code-block.tsx";
import { Field } from "../../../components/field.tsx";
import { Tabs } from "../../../components/tabs.tsx";
import { useScope, useTrafficOrigin } from "../../../session/session.ts";
import type { Gateway } from "../gateway.ts";
import { PROVIDERS, snippet, SNIPPETS, type SnippetName } from "./snippets.ts";

export function ClientSnippets({
  gateway,
  token,
}: {
  readonly gateway: Gateway;
  readonly token: string | null;
}) {
  const { accountId } = useScope();
  const [name, setName] = useState<SnippetName>("curl");
  const [provider, setProvider] = useState("echo");
  const origin = useTrafficOrigin();
  const code = snippet(name, { origin, accountId, gatewayId: gateway.id, provider, token });
  return (
    <div className="stack">
      <p className="muted">
        Send the token in the <code>gw-aig-authorization</code> header of every call, and the provider's API
        key in <code>Authorization</code>.{" "}
        {token === null
          ? "The code reads the token from the GATEWAY_TOKEN environment variable."
          : "The code contains the token you just created."}
      </p>
      {name !== "anthropic" && (
        <div className="filters">
          <Field label="Provider">
            <select value={provider} onChange={(event) => setProvider(event.target.value)}>
              {PROVIDERS.map(({ slug, title }) => (
                <option key={slug} value={slug}>
                  {title}
                </option>
              ))}
            </select>
          </Field>
        </div>
      )}
      <Tabs label="Client" tabs={SNIPPETS} current={name} onChange={setName}>
        <CodeBlock code={code} label="Client code" />
      </Tabs>
    </div>
  );
}
