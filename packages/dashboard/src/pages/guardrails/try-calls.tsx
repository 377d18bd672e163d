import type { GuardrailCallTrial, GuardrailRule } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { Field } from "../../components/field.tsx";
import { SelectField } from "../../components/select-field.tsx";
import { count } from "../../format/number.ts";
import { useAction } from "../../http/use-action.ts";
import { useAccount } from "../../session/session.ts";
import { addFindings } from "./add-findings.ts";
import { FindingsView } from "./findings-view.tsx";

const HOUR_MS = 3_600_000;
const SPANS = [
  ["1", "the last hour"],
  ["24", "the last 24 hours"],
  ["168", "the last 7 days"],
  ["720", "the last 30 days"],
] as const;
type Span = (typeof SPANS)[number][0];

interface TryCallsProps {
  readonly rules: readonly GuardrailRule[];
  readonly gatewayId: string | undefined;
}

/** What rules would have done with stored calls. A long time is searched in parts: each request continues the one before. */
export function TryCalls({ rules, gatewayId }: TryCallsProps) {
  const account = useAccount();
  const [span, setSpan] = useState<Span>("24");
  const [text, setText] = useState("");
  const [trial, setTrial] = useState<GuardrailCallTrial | null>(null);
  const [asked, setAsked] = useState<object>({});
  const run = useAction(async (before: GuardrailCallTrial | null) => {
    const query =
      before === null
        ? {
            ...(gatewayId === undefined ? {} : { gateway_id: gatewayId }),
            ...(text === "" ? {} : { q: text }),
            start_date: new Date(Date.now() - Number(span) * HOUR_MS).toISOString(),
          }
        : asked;
    setAsked(query);
    const found = await account.guardrails.tryCalls(rules, {
      ...query,
      ...(before?.cursor == null ? {} : { cursor: before.cursor }),
    });
    setTrial(
      before === null
        ? found
        : {
            ...addFindings(before, found),
            calls: before.calls + found.calls,
            incomplete: before.incomplete + found.incomplete,
          },
    );
  });
  return (
    <>
      <div className="row guardrail-try">
        <SelectField label="Calls of" value={span} options={SPANS} onChange={setSpan} />
        <Field label="With the text">
          <input
            type="search"
            value={text}
            maxLength={256}
            placeholder="Any"
            onChange={({ target }) => setText(target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              // The form around it would save the rule.
              event.preventDefault();
              void run.run(null);
            }}
          />
        </Field>
        <Button isBusy={run.isBusy} onClick={() => void run.run(null)}>
          Try the calls
        </Button>
      </div>
      {run.error !== null && <ErrorNotice error={run.error} />}
      <div aria-live="polite" className="stack">
        {trial !== null && (
          <>
            <p>
              Calls searched: {count(trial.calls)}. Would have been blocked: {count(trial.block)}, masked:{" "}
              {count(trial.mask)}, flagged: {count(trial.flag)}.
              {trial.incomplete > 0 &&
                ` Of ${count(trial.incomplete)}, a body is not stored as a whole: only the rest was searched.`}
            </p>
            <FindingsView found={trial} />
            {trial.cursor !== null && (
              <div>
                <Button isBusy={run.isBusy} onClick={() => void run.run(trial)}>
                  Search earlier calls
                </Button>
              </div>
            )}
          </>
        )}
      </div>
    </>
  );
}
