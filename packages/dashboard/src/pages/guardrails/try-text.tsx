import type { GuardrailPlace, GuardrailRule, GuardrailTrial } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { SelectField } from "../../components/select-field.tsx";
import { useAction } from "../../http/use-action.ts";
import { useAccount } from "../../session/session.ts";
import { ActionBadge } from "./action-badge.tsx";

const MAX_LENGTH = 256 * 1024;

export function TryText({ rules }: { readonly rules: readonly GuardrailRule[] }) {
  const account = useAccount();
  const [text, setText] = useState("");
  const [place, setPlace] = useState<GuardrailPlace>("prompt");
  const [trial, setTrial] = useState<GuardrailTrial | null>(null);
  const run = useAction(async () => setTrial(await account.guardrails.tryText(rules, text, place)));
  return (
    <>
      <Field label="Text">
        <textarea
          value={text}
          maxLength={MAX_LENGTH}
          placeholder="Write to ada@example.org"
          onChange={({ target }) => {
            setText(target.value);
            setTrial(null);
          }}
        />
      </Field>
      <div className="row guardrail-try">
        <SelectField
          label="As"
          value={place}
          options={[
            ["prompt", "a prompt"],
            ["response", "an answer"],
          ]}
          onChange={(next) => {
            setPlace(next);
            setTrial(null);
          }}
        />
        <Button isBusy={run.isBusy} disabled={text === ""} onClick={() => void run.run()}>
          Try the text
        </Button>
      </div>
      {run.error !== null && <ErrorNotice error={run.error} />}
      <div aria-live="polite">{trial !== null && <Result trial={trial} />}</div>
    </>
  );
}

function Result({ trial: { action, text, findings } }: { readonly trial: GuardrailTrial }) {
  if (action === null) return <p className="muted">Nothing was found. The text passes as it is.</p>;
  return (
    <div className="stack">
      <ul className="guardrail-findings">
        {findings.map((one) => (
          <li key={`${one.rule} ${one.kind}`} className="row">
            <ActionBadge action={one.action} />
            <strong>{one.rule}</strong>
            <span className="muted">
              {one.kind}, {one.count === 1 ? "once" : `${one.count} times`}
            </span>
          </li>
        ))}
      </ul>
      {text === null ? <p>The call is refused.</p> : <pre className="guardrail-text">{text}</pre>}
    </div>
  );
}
