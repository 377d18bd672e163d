import type { GuardrailRule } from "@signalbox/client";
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Table } from "../../components/table.tsx";
import { ActionBadge } from "./action-badge.tsx";
import { withSavedRule } from "./rule-draft.ts";
import { RuleDialog } from "./rule-dialog.tsx";
import { placesOf, subjectOf, TYPE_TITLES } from "./rule-words.ts";

interface RulesSectionProps {
  readonly rules: readonly GuardrailRule[];
  /** Undefined: the account. */
  readonly gatewayId: string | undefined;
  readonly canEdit: boolean;
  readonly onSave: (change: (rules: readonly GuardrailRule[]) => readonly GuardrailRule[]) => Promise<void>;
}

type Shown =
  | { readonly kind: "edit"; readonly rule: GuardrailRule | null }
  | { readonly kind: "remove"; readonly rule: GuardrailRule }
  | null;

/** The rules of a gateway or of the account, which can be added, edited and removed. */
export function RulesSection({ rules, gatewayId, canEdit, onSave }: RulesSectionProps) {
  const [dialog, setDialog] = useState<Shown>(null);
  const close = () => setDialog(null);
  const add = canEdit && (
    <Button kind="primary" onClick={() => setDialog({ kind: "edit", rule: null })}>
      Add guardrail
    </Button>
  );
  return (
    <section className="section" aria-labelledby="guardrail-rules-title">
      <div className="row spread">
        <h2 id="guardrail-rules-title">Rules</h2>
        {rules.length > 0 && add}
      </div>
      {rules.length === 0 ? (
        <EmptyState title="No guardrails here">
          <p>
            A guardrail looks for personal data, secrets, words or patterns in prompts and answers, or asks a
            model, and blocks, masks or flags what it finds.
          </p>
          {add}
        </EmptyState>
      ) : (
        <Table
          label="Guardrails"
          rows={rules}
          keyOf={({ id }) => id}
          columns={[
            {
              title: "Name",
              cell: ({ id, enabled }) => (
                <>
                  <strong>{id}</strong> {enabled === false && <Badge tone="warn">off</Badge>}
                </>
              ),
            },
            {
              title: "Looks for",
              cell: (rule) => (
                <>
                  {TYPE_TITLES[rule.type]}: <span className="muted">{subjectOf(rule)}</span>
                </>
              ),
            },
            { title: "In", isMinor: true, cell: (rule) => placesOf(rule) },
            {
              title: "What follows",
              cell: ({ action, logs }) => (
                <span className="row">
                  <ActionBadge action={action} />
                  {logs === "masked" && <Badge>masked in the log</Badge>}
                </span>
              ),
            },
            {
              title: "Actions",
              isAction: true,
              cell: (rule) =>
                canEdit && (
                  <span className="row nowrap-row">
                    <Button size="small" onClick={() => setDialog({ kind: "edit", rule })}>
                      Edit<span className="visually-hidden"> {rule.id}</span>
                    </Button>
                    <Button size="small" onClick={() => setDialog({ kind: "remove", rule })}>
                      Remove<span className="visually-hidden"> {rule.id}</span>
                    </Button>
                  </span>
                ),
            },
          ]}
        />
      )}
      {dialog?.kind === "edit" && (
        <RuleDialog
          rule={dialog.rule}
          gatewayId={gatewayId}
          onSave={(rule) => onSave((now) => withSavedRule(now, dialog.rule, rule))}
          onClose={close}
        />
      )}
      {dialog?.kind === "remove" && (
        <ConfirmDialog
          title={`Remove ${dialog.rule.id}?`}
          verb="Remove"
          onConfirm={() => onSave((now) => now.filter(({ id }) => id !== dialog.rule.id))}
          onClose={close}
        >
          <p>The next call is not searched by this rule.</p>
        </ConfirmDialog>
      )}
    </section>
  );
}
