import type { Call, GuardrailFinding } from "@signalbox/client";
import { Table } from "../../components/table.tsx";
import { ActionBadge } from "./action-badge.tsx";

/** What the guardrails found in a call; nothing if they found nothing. */
export function CallGuardrails({ call }: { readonly call: Call }) {
  const findings = parse(call.guardrails);
  if (findings.length === 0) return null;
  return (
    <section className="section" aria-labelledby="call-guardrails-title">
      <h2 id="call-guardrails-title">Guardrails</h2>
      <Table
        label="Guardrails"
        rows={findings}
        keyOf={(one) => JSON.stringify(one)}
        columns={[
          { title: "What followed", cell: ({ action }) => <ActionBadge action={action} /> },
          {
            title: "Rule",
            cell: ({ rule, owner }) => (
              <>
                <strong>{rule}</strong>{" "}
                <span className="muted">of {owner === "call" ? "the header" : owner}</span>
              </>
            ),
          },
          { title: "In", cell: ({ place }) => (place === "prompt" ? "the prompt" : "the answer") },
          { title: "Found", cell: ({ kind }) => <code>{kind}</code> },
          { title: "Times", align: "end", cell: ({ count }) => String(count) },
        ]}
      />
    </section>
  );
}

function parse(json: string | undefined): readonly GuardrailFinding[] {
  return json === undefined ? [] : (JSON.parse(json) as GuardrailFinding[]);
}
