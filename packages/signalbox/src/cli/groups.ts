/** The groups of commands, by task, in the order of the overview. A group that is not listed here appears at the end. */
export interface Section {
  readonly title: string;
  /** First words of commands, with what the group is about. A command of one word has its own summary. */
  readonly groups: Readonly<Record<string, string>>;
}

export const SECTIONS: readonly Section[] = [
  {
    title: "Start",
    groups: { init: "", serve: "", dev: "", "login-link": "", doctor: "", completion: "", version: "" },
  },
  {
    title: "Call models",
    groups: {
      gateway: "Gateways, their settings and tokens.",
      "provider-keys": "Keys of providers that the server stores.",
      routes: "Dynamic routes: conditions, fallbacks, shares.",
      circuits: "Targets that are skipped because they fail.",
      import: "Settings of other gateways.",
    },
  },
  {
    title: "See calls and cost",
    groups: {
      logs: "Stored calls.",
      usage: "",
      prices: "Own prices of models.",
      budgets: "What is left of limits.",
      credit: "Prepaid credit.",
    },
  },
  {
    title: "Webhooks and agents",
    groups: {
      webhooks: "Sources, routes and deliveries.",
      agents: "Agents, their instances, queues and schedules.",
    },
  },
  { title: "Tags", groups: { tags: "Tags of resources: read, change, find, history." } },
  {
    title: "Accounts and access",
    groups: {
      account: "Accounts.",
      token: "Tokens: permissions, budgets, limits.",
      keys: "Encryption of stored keys.",
      audit: "Who changed what.",
    },
  },
  {
    title: "Operate",
    groups: {
      alerts: "Rules that report problems.",
      cluster: "Nodes and their database.",
      config: "Configuration.",
      backup: "",
      restore: "",
    },
  },
];

export function groupSummary(word: string): string {
  return SECTIONS.map(({ groups }) => groups[word]).find((text) => text !== undefined) ?? "";
}
