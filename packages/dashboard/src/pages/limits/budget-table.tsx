import type { BudgetState } from "@signalbox/client";
import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { amount } from "./amount.ts";
import { BudgetMeter } from "./budget-meter.tsx";
import { windowText } from "./period.ts";
import { CreditDialog, type CreditOwner } from "./credit-dialog.tsx";

interface BudgetTableProps {
  readonly budgets: readonly BudgetState[];
  readonly owner: CreditOwner;
  readonly canEdit: boolean;
  /** Called when credit was added. */
  readonly onChange: () => void;
}

/** What is left of each limit. */
export function BudgetTable({ budgets, owner, canEdit, onChange }: BudgetTableProps) {
  const [credited, setCredited] = useState<BudgetState | null>(null);
  return (
    <>
      <Table
        label="What is left"
        rows={budgets}
        keyOf={({ rule, partition }) => `${rule} ${partition ?? ""}`}
        columns={[
          {
            title: "Limit",
            cell: ({ rule, partition, is_soft: isSoft }) => (
              <>
                <strong>{rule}</strong> {isSoft && <Badge tone="warn">reports only</Badge>}
                {partition !== null && <div className="muted small">{partitionText(partition)}</div>}
              </>
            ),
          },
          { title: "Left", cell: (budget) => <BudgetMeter budget={budget} /> },
          {
            title: "Used",
            align: "end",
            cell: ({ type, used, reserved }) => (
              <>
                {amount(type, used)}
                {reserved > 0 && (
                  <div className="muted small">{amount(type, reserved)} by calls that are running</div>
                )}
              </>
            ),
          },
          { title: "Counts", isMinor: true, cell: ({ type, window }) => `${type} ${windowText(window)}` },
          { title: "Resets", cell: ({ reset_at: at }) => <Time at={at} fallback="–" isDue /> },
          {
            title: "Actions",
            isAction: true,
            cell: (budget) =>
              canEdit &&
              isCredit(budget) && (
                <Button size="small" onClick={() => setCredited(budget)}>
                  Add credit<span className="visually-hidden"> to {budget.rule}</span>
                </Button>
              ),
          },
        ]}
      />
      {credited !== null && (
        <CreditDialog budget={credited} owner={owner} onClose={() => setCredited(null)} onAdded={onChange} />
      )}
    </>
  );
}

/** The values that the amounts belong to, which the service names as JSON: `[["team","search"]]` is "team search". */
function partitionText(partition: string): string {
  try {
    const pairs = JSON.parse(partition) as readonly (readonly [string, string | number | boolean | null])[];
    return pairs
      .map(([name, value]) => (value === null ? `no ${name}` : `${name} ${String(value)}`))
      .join(", ");
  } catch {
    return partition;
  }
}

/** Prepaid credit is a cost limit without a window. */
function isCredit({ type, window, is_soft: isSoft }: BudgetState): boolean {
  return type === "cost" && window === "in total" && !isSoft;
}
