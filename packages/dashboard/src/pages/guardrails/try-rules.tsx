import type { GuardrailRule } from "@signalbox/client";
import { useState } from "react";
import { Tabs } from "../../components/tabs.tsx";
import { TryCalls } from "./try-calls.tsx";
import { TryText } from "./try-text.tsx";

interface TryRulesProps {
  readonly title: string;
  readonly rules: readonly GuardrailRule[];
  /** Undefined: the calls of all gateways. */
  readonly gatewayId: string | undefined;
}

const TABS = [
  { name: "text", title: "On a text" },
  { name: "calls", title: "On stored calls" },
] as const;

/** What rules do with a sample, and would have done with calls of the past. Nothing is sent or stored. */
export function TryRules({ title, rules, gatewayId }: TryRulesProps) {
  const [tab, setTab] = useState<(typeof TABS)[number]["name"]>("text");
  return (
    <section className="panel" aria-label={title}>
      <h3>{title}</h3>
      <Tabs label={title} tabs={TABS} current={tab} onChange={setTab}>
        {tab === "text" ? <TryText rules={rules} /> : <TryCalls rules={rules} gatewayId={gatewayId} />}
      </Tabs>
    </section>
  );
}
