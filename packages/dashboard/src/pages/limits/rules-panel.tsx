import type { SpendRule } from "@signalbox/client";
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { Table } from "../../components/table.tsx";
import { amount } from "./amount.ts";
import { windowTitle } from "./period.ts";
import { withEditedRule } from "./rule-draft.ts";
import { RuleDialog } from "./rule-dialog.tsx";

interface RulesPanelProps {
  readonly rules: readonly SpendRule[];
  readonly canEdit: boolean;
  /** Applies the change to the newest rules of the server, so that credit added meanwhile is kept. */
  readonly onSave: (change: (rules: readonly SpendRule[]) => readonly SpendRule[]) => Promise<void>;
}

type Shown = { kind: "edit"; rule: SpendRule | null } | { kind: "remove"; rule: SpendRule } | null;

/** The limits of a gateway or account, which can be added, edited and removed. */
export function RulesPanel({ rules, canEdit, onSave }: RulesPanelProps) {
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
      {rules.length === 0 ? (
        <p className="muted">No limits. Calls are not limited here.</p>
      ) : (
        <Table
          label="Limits"
          rows={rules}
          keyOf={({ id = "" }) => id}
          columns={[
            {
              title: "Name",
              cell: ({ id, enabled }) => (
                <>
                  <strong>{id}</strong> {enabled === false && <Badge tone="warn">off</Badge>}
                </>
              ),
            },
            { title: "Limit", cell: (rule) => limitText(rule) },
            { title: "Applies to", cell: (rule) => scopeText(rule) },
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

function limitText({ limitType, limit, window }: SpendRule): string {
  if (limitType === "parallel") return `${amount(limitType, limit)} calls at the same time`;
  const noun = limitType === "cost" ? "" : ` ${limitType}`;
  return `${amount(limitType, limit)}${noun} ${windowTitle(window)}`;
}

function scopeText({ model, provider, metadata = {} }: SpendRule): string {
  const parts = [
    ...(model === undefined ? [] : [`models ${model.values.join(", ")}`]),
    ...(provider === undefined ? [] : [`providers ${provider.values.join(", ")}`]),
    ...Object.entries(metadata).map(([key, one]) =>
      one.mode === "partition" ? `each ${key}` : `${key} ${one.values.join(", ")}`,
    ),
  ];
  return parts.length === 0 ? "all calls" : parts.join("; ");
}
