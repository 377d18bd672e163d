import type { BudgetState } from "@signalbox/client";
import { useState } from "react";
import { Field } from "../../components/field.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { money } from "../../format/number.ts";
import { useAccount } from "../../session/session.ts";

/** Whose limit it is; without both members, the account's. */
export interface CreditOwner {
  readonly gatewayId?: string | undefined;
  readonly tokenId?: string | undefined;
}

interface CreditDialogProps {
  readonly budget: BudgetState;
  readonly owner: CreditOwner;
  readonly onClose: () => void;
  readonly onAdded: () => void;
}

export function CreditDialog({ budget, owner, onClose, onAdded }: CreditDialogProps) {
  const account = useAccount();
  const [dollars, setDollars] = useState("");
  const add = async () => {
    // A token has one prepaid budget, so the interface takes no rule for it.
    const rule = owner.tokenId === undefined ? budget.rule : undefined;
    await account.budgets.addCredit(Number(dollars), { ...owner, rule });
    onAdded();
  };
  return (
    <FormDialog title={`Add credit to ${budget.rule}`} verb="Add credit" onSubmit={add} onClose={onClose}>
      <p>
        {money(budget.remaining)} of {money(budget.limit)} is left.
      </p>
      <Field label="Amount (US dollars)">
        <input
          type="number"
          required
          min={0.000001}
          step="any"
          value={dollars}
          onChange={({ target }) => setDollars(target.value)}
        />
      </Field>
    </FormDialog>
  );
}
