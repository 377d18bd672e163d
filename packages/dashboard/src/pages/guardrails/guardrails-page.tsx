import type { GuardrailRule } from "@signalbox/client";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { SelectField } from "../../components/select-field.tsx";
import { useResource } from "../../http/use-resource.ts";
import { useQueryValue } from "../../routing/location.ts";
import { useAccount, useHasPermission, useScope } from "../../session/session.ts";
import { CaughtSection } from "./caught-section.tsx";
import { isJudged } from "./rule-draft.ts";
import { RulesSection } from "./rules-section.tsx";
import { TryRules } from "./try-rules.tsx";

/** Guardrails of the account or of one gateway: to write them, to try them, and to see what they found. */
export function GuardrailsPage() {
  const account = useAccount();
  const { session } = useScope();
  const canEdit = useHasPermission("gateway.edit");
  const [chosen, choose] = useQueryValue("gateway");
  const bound = session.gateway_id;
  const named = bound ?? chosen;
  const gatewayId = named === "" ? undefined : named;
  const gateways = useResource(`gateways ${account.id}`, (signal) =>
    account.gateways.list({}, { signal }).all(),
  );
  const rules = useResource(`guardrails ${account.id} ${named}`, (signal) =>
    account.guardrails.rules(gatewayId, { signal }),
  );
  const save = async (change: (now: readonly GuardrailRule[]) => readonly GuardrailRule[]) => {
    await account.guardrails.change(change, gatewayId);
    rules.reload();
  };
  return (
    <>
      <PageHeader title="Guardrails">
        Rules on the texts of calls. Those of the account, of the gateway and of the token all apply, and the
        strictest action wins.
      </PageHeader>
      {bound === null && (
        <div className="filters">
          <SelectField
            label="Rules of"
            value={chosen}
            options={[
              ["", "the account, for all gateways"],
              ...(gateways.value ?? []).map(({ id }) => [id, `gateway ${id}`] as const),
            ]}
            onChange={choose}
          />
        </div>
      )}
      <ResourceView of={rules}>
        {(value) => {
          const tried = value.filter(({ type }) => !isJudged(type));
          return (
            <div className="stack">
              <RulesSection key={named} rules={value} gatewayId={gatewayId} canEdit={canEdit} onSave={save} />
              {tried.length > 0 && (
                <TryRules
                  key={`try ${named}`}
                  title={tried.length === value.length ? "Try these rules" : "Try the rules that ask nobody"}
                  rules={tried}
                  gatewayId={gatewayId}
                />
              )}
              <CaughtSection gatewayId={gatewayId} />
            </div>
          );
        }}
      </ResourceView>
    </>
  );
}
