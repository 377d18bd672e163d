import type { BudgetState, SpendRule } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import type { CreditOwner } from "./credit-dialog.tsx";
import { type LimitRow, limitRows } from "./limit-rows.ts";
import { LimitsTable } from "./limits-table.tsx";
import { withEditedRule } from "./rule-draft.ts";
import { RuleDialog } from "./rule-dialog.tsx";

interface RulesPanelProps {
  readonly rules: readonly SpendRule[];
  /** What is left of them. */
  readonly states: readonly BudgetState[];
  readonly owner: CreditOwner;
  /** Limits of others in the same table, such as budgets of tokens. */
  readonly others?: readonly LimitRow[];
  /** Called when credit was added. */
  readonly onChange: () => void;
  readonly canEdit: boolean;
  /** Applies the change to the newest rules of the server, so that credit added meanwhile is kept. */
  readonly onSave: (change: (rules: readonly SpendRule[]) => readonly SpendRule[]) => Promise<void>;
}

type Shown = { kind: "edit"; rule: SpendRule | null } | { kind: "remove"; rule: SpendRule } | null;

/** The limits of a gateway or account, which can be added, edited and removed. */
export function RulesPanel(props: RulesPanelProps) {
  const { rules, states, owner, others = [], canEdit, onChange, onSave } = props;
  const rows = [...limitRows(rules, states, owner), ...others];
  const [dialog, setDialog] = useState<Shown>(null);
  const close = () => setDialog(null);
  const save = (before: SpendRule | null, rule: SpendRule) =>
    onSave((now) => (before === null ? [...now, rule] : withEditedRule(now, before, rule)));
  return (
    <section className="section" aria-labelledby="rules-title">
      <div className="row spread">
        <h2 id="rules-title">Limits</h2>
        {canEdit && (
          <Button kind="primary" onClick={() => setDialog({ kind: "edit", rule: null })}>
            Add limit
          </Button>
        )}
      </div>
      {rows.length === 0 ? (
        <p className="muted">No limits. Calls are not limited here.</p>
      ) : (
        <LimitsTable
          label="Limits"
          rows={rows}
          canEdit={canEdit}
          onChange={onChange}
          onEdit={(rule) => setDialog({ kind: "edit", rule })}
          onRemove={(rule) => setDialog({ kind: "remove", rule })}
        />
      )}
      {dialog?.kind === "edit" && (
        <RuleDialog rule={dialog.rule} onSave={(rule) => save(dialog.rule, rule)} onClose={close} />
      )}
      {dialog?.kind === "remove" && (
        <ConfirmDialog
          title={`Remove ${dialog.rule.id ?? "limit"}?`}
          verb="Remove"
          onConfirm={() => onSave((now) => now.filter(({ id }) => id !== dialog.rule.id))}
          onClose={close}
        >
          <p>The next call is not bound by this limit.</p>
        </ConfirmDialog>
      )}
    </section>
  );
}
