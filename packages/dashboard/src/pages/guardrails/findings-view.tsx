import type { GuardrailFindings } from "@signalbox/client";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count } from "../../format/number.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { ActionBadge } from "./action-badge.tsx";
import { keyOf } from "./add-findings.ts";

const OWNERS: Readonly<Record<string, string>> = {
  gateway: "gateway",
  account: "account",
  token: "token",
  call: "header of the call",
  dlp: "setting dlp",
  guardrails: "setting guardrails",
};

/** Findings by rule, and some of the calls. */
export function FindingsView({ found }: { readonly found: GuardrailFindings }) {
  const { page } = useAccountPaths();
  if (found.rules.length === 0) return null;
  return (
    <>
      <Table
        label="Findings by rule"
        rows={found.rules}
        keyOf={keyOf}
        columns={[
          { title: "Rule", cell: ({ rule }) => <strong>{rule}</strong> },
          { title: "Of", isMinor: true, cell: ({ owner }) => OWNERS[owner] ?? owner },
          { title: "In", cell: ({ place }) => (place === "prompt" ? "prompts" : "answers") },
          { title: "Found", cell: ({ kind }) => <code>{kind}</code> },
          { title: "What follows", cell: ({ action }) => <ActionBadge action={action} /> },
          { title: "Calls", align: "end", cell: ({ calls }) => count(calls) },
          { title: "Texts", align: "end", isMinor: true, cell: (rule) => count(rule.count) },
        ]}
      />
      <Table
        label="Calls with findings"
        rows={found.samples}
        keyOf={({ id }) => id}
        columns={[
          {
            title: "Call",
            cell: ({ id, gateway_id: gateway, created_at: at }) => (
              <Link to={page("gateways", gateway, "logs", id)}>
                <Time at={at} />
                <span className="visually-hidden"> {id}</span>
              </Link>
            ),
          },
          { title: "Gateway", isMinor: true, cell: ({ gateway_id: gateway }) => gateway },
          { title: "What follows", cell: ({ action }) => <ActionBadge action={action} /> },
          {
            title: "Rules",
            cell: ({ findings }) => [...new Set(findings.map(({ rule }) => rule))].join(", "),
          },
        ]}
      />
    </>
  );
}
