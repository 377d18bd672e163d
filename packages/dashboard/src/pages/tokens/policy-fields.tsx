import { EditRows } from "../../components/edit-rows.tsx";
import { Field } from "../../components/field.tsx";
import { LinesField } from "../../components/lines-field.tsx";
import { PeriodFields } from "../limits/period-fields.tsx";
import {
  BLANK_BUDGET,
  BLANK_RATE,
  type BudgetDraft,
  type PolicyDraft,
  type RateDraft,
} from "./policy-draft.ts";

interface PolicyFieldsProps {
  readonly draft: PolicyDraft;
  readonly onChange: (draft: PolicyDraft) => void;
}

/** Budgets, rate limits, models, owner and metadata of a token. */
export function PolicyFields({ draft, onChange }: PolicyFieldsProps) {
  const change = (part: Partial<PolicyDraft>) => onChange({ ...draft, ...part });
  return (
    <div className="stack">
      <EditRows
        legend="Budgets"
        hint="A call that does not fit into every budget is refused. One budget for each period."
        noun="budget"
        rows={draft.budgets}
        blank={BLANK_BUDGET}
        onChange={(budgets) => change({ budgets })}
      >
        {(budget, edit) => <BudgetFields budget={budget} onChange={edit} />}
      </EditRows>
      <EditRows
        legend="Rate limits"
        noun="rate limit"
        rows={draft.rates}
        blank={BLANK_RATE}
        onChange={(rates) => change({ rates })}
      >
        {(rate, edit) => <RateFields rate={rate} onChange={edit} />}
      </EditRows>
      <div className="form-grid">
        <LinesField
          label="Models"
          hint="provider/model, one in each line. * matches any text, ! excludes. Empty: all."
          value={draft.models}
          placeholder={"openai/gpt-5*\n!*pro*"}
          onChange={(models) => change({ models })}
        />
        <LinesField
          label="Providers"
          hint="One in each line. Empty: all."
          value={draft.providers}
          placeholder="openai"
          onChange={(providers) => change({ providers })}
        />
        <LinesField
          label="Kinds of calls"
          hint="chat, embeddings, images …, one in each line. Empty: all."
          value={draft.routes}
          placeholder="chat"
          onChange={(routes) => change({ routes })}
        />
        <LinesField
          label="Metadata"
          hint="name=value in each line. Stamped on every call of the token."
          value={draft.metadata}
          placeholder="team=search"
          onChange={(metadata) => change({ metadata })}
        />
        <Field label="Owner" hint="A person or team. Calls have it as metadata token.owner.">
          <input
            maxLength={256}
            value={draft.owner}
            placeholder="ada@example.com"
            onChange={({ target }) => change({ owner: target.value })}
          />
        </Field>
        <LinesField
          label="Tags"
          hint="name=value in each line, for groups of tokens."
          value={draft.tags}
          placeholder="team=search"
          onChange={(tags) => change({ tags })}
        />
      </div>
      <EditRows
        legend="Soft budget"
        hint="A call beyond it is reported, not refused."
        noun="soft budget"
        max={1}
        rows={draft.softBudget}
        blank={BLANK_BUDGET}
        onChange={(softBudget) => change({ softBudget })}
      >
        {(budget, edit) => <BudgetFields budget={budget} onChange={edit} />}
      </EditRows>
    </div>
  );
}

interface BudgetFieldsProps {
  readonly budget: BudgetDraft;
  readonly onChange: (part: Partial<BudgetDraft>) => void;
}

function BudgetFields({ budget, onChange }: BudgetFieldsProps) {
  return (
    <>
      <Field label="US dollars">
        <input
          type="number"
          required
          min={0}
          step="any"
          value={budget.limit}
          onChange={({ target }) => onChange({ limit: target.value })}
        />
      </Field>
      <PeriodFields
        period={budget.period}
        onChange={(part) => onChange({ period: { ...budget.period, ...part } })}
      />
    </>
  );
}

interface RateFieldsProps {
  readonly rate: RateDraft;
  readonly onChange: (part: Partial<RateDraft>) => void;
}

function RateFields({ rate, onChange }: RateFieldsProps) {
  return (
    <>
      <Field label="Counts">
        <select
          value={rate.type}
          onChange={({ target }) => onChange({ type: target.value as RateDraft["type"] })}
        >
          <option value="requests">Requests</option>
          <option value="tokens">Tokens</option>
          <option value="parallel">Parallel calls</option>
        </select>
      </Field>
      <Field label="Limit">
        <input
          type="number"
          required
          min={1}
          step={1}
          value={rate.limit}
          onChange={({ target }) => onChange({ limit: target.value })}
        />
      </Field>
      {rate.type !== "parallel" && (
        <Field label="Interval (seconds)">
          <input
            type="number"
            required
            min={1}
            step={1}
            value={rate.interval}
            onChange={({ target }) => onChange({ interval: target.value })}
          />
        </Field>
      )}
    </>
  );
}
