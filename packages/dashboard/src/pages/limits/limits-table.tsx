import { useState } from "react";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { dayTime, exactTime } from "../../format/time.ts";
import { count } from "../../format/number.ts";
import { Link } from "../../routing/link.tsx";
import type { BudgetState, SpendRule } from "@signalbox/client";
import { amount } from "./amount.ts";
import { BudgetMeter } from "./budget-meter.tsx";
import { CreditDialog } from "./credit-dialog.tsx";
import { usedUpAt } from "./forecast.ts";
import type { LimitRow } from "./limit-rows.ts";
import { windowText, windowTitle } from "./period.ts";

interface LimitsTableProps {
  readonly label: string;
  readonly rows: readonly LimitRow[];
  readonly canEdit: boolean;
  /** Called when credit was added. */
  readonly onChange: () => void;
  readonly onEdit?: (rule: SpendRule) => void;
  readonly onRemove?: (rule: SpendRule) => void;
}

/** Each limit, what it applies to, what is left of it, and when it is used up at this pace. */
export function LimitsTable({ label, rows, canEdit, onChange, onEdit, onRemove }: LimitsTableProps) {
  const [credited, setCredited] = useState<LimitRow | null>(null);
  return (
    <>
      <Table
        label={label}
        rows={rows}
        keyOf={({ key }) => key}
        columns={[
          {
            title: "Limit",
            cell: ({ name, rule, budget, of }) => (
              <>
                <strong>{name}</strong> {rule?.enabled === false && <Badge tone="warn">off</Badge>}
                {budget?.is_soft === true && <Badge tone="warn">reports only</Badge>}
                {of !== null && (
                  <div className="small">
                    <Link to={of.to}>{of.title}</Link>
                  </div>
                )}
              </>
            ),
          },
          { title: "Allows", cell: ({ rule, budget }) => limitText(rule, budget) },
          {
            title: "Applies to",
            isMinor: true,
            cell: ({ rule, budget, more }) => (
              <>
                {budget?.partition == null
                  ? rule === null
                    ? "all calls"
                    : scopeText(rule)
                  : partitionText(budget.partition)}
                {more > 0 && <div className="muted small">and {count(more)} others, which used less</div>}
              </>
            ),
          },
          {
            title: "Left",
            cell: ({ budget }) =>
              budget === null ? <span className="muted">nothing used</span> : <BudgetMeter budget={budget} />,
          },
          {
            title: "Used",
            align: "end",
            cell: ({ budget }) =>
              budget !== null && (
                <>
                  {amount(budget.type, budget.used)}
                  {budget.reserved > 0 && (
                    <div className="muted small">
                      {amount(budget.type, budget.reserved)} by calls that are running
                    </div>
                  )}
                </>
              ),
          },
          {
            title: "Resets",
            cell: ({ budget }) =>
              budget !== null && (
                <>
                  <Time at={budget.reset_at} fallback="–" isDue />
                  <Forecast budget={budget} />
                </>
              ),
          },
          {
            title: "Actions",
            isAction: true,
            cell: (row) => {
              const { rule, budget, name, isFirst } = row;
              if (!canEdit) return null;
              return (
                <span className="row nowrap-row">
                  {budget !== null && isCredit(budget) && (
                    <Button size="small" onClick={() => setCredited(row)}>
                      Add credit<span className="visually-hidden"> to {name}</span>
                    </Button>
                  )}
                  {isFirst && rule !== null && onEdit !== undefined && (
                    <Button size="small" onClick={() => onEdit(rule)}>
                      Edit<span className="visually-hidden"> {name}</span>
                    </Button>
                  )}
                  {isFirst && rule !== null && onRemove !== undefined && (
                    <Button size="small" onClick={() => onRemove(rule)}>
                      Remove<span className="visually-hidden"> {name}</span>
                    </Button>
                  )}
                </span>
              );
            },
          },
        ]}
      />
      {credited?.budget != null && (
        <CreditDialog
          budget={credited.budget}
          owner={credited.owner}
          onClose={() => setCredited(null)}
          onAdded={onChange}
        />
      )}
    </>
  );
}

function Forecast({ budget }: { readonly budget: BudgetState }) {
  const at = usedUpAt(budget, Date.now());
  if (at === null) return null;
  return (
    <div className="small limit-forecast" title={exactTime(at)}>
      used up on {dayTime(at)} at this pace
    </div>
  );
}

function limitText(rule: SpendRule | null, budget: BudgetState | null): string {
  if (rule === null)
    return budget === null ? "" : `${amountText(budget.type, budget.limit)} ${windowText(budget.window)}`;
  const { limitType, limit, window } = rule;
  return limitType === "parallel"
    ? amountText(limitType, limit)
    : `${amountText(limitType, limit)} ${windowTitle(window)}`;
}

function amountText(type: BudgetState["type"], limit: number): string {
  const noun = { cost: "", requests: " requests", tokens: " tokens", parallel: " calls at the same time" };
  return `${amount(type, limit)}${noun[type]}`;
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
