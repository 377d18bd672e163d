/** `docs/decisions/README.md`: the index of decisions, from the head of each file. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../docs/decisions");

export const DECISIONS_PAGE_PATH = join(FOLDER, "README.md");

/** The areas, in the order of the index. */
export const AREAS: Readonly<Record<string, string>> = {
  architecture: "Sources, engines, clocks, what accounts share, command line, client.",
  http: "Listener, management interface, tokens, sessions, audit log.",
  database: "The control plane on SQLite and PostgreSQL.",
  cluster: "Members, settings, leases, requests between nodes.",
  gateway: "Providers, keys, dialects, retries, routes, realtime sessions.",
  limits: "Rates, budgets, money.",
  "call log": "Stored calls, usage, telemetry.",
  agents: "Instances, turns, WebSockets, objects of a program.",
  "instance store": "The databases of instances.",
  webhooks: "Deliveries and their entities.",
  tags: "Tags and their index.",
  tests: "How promises are proven.",
};

/** The decisions that explain most of the code, in the order in which to read them. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  "The whole": ["0001", "0101", "0295", "0002", "0088", "0003", "0091"],
  Agents: ["0078", "0021", "0020", "0049", "0084", "0083"],
  Gateway: ["0291", "0010", "0108", "0120", "0015"],
  Limits: ["0013", "0112", "0299", "0156"],
  Cluster: ["0147", "0148", "0162", "0167", "0171", "0172", "0174"],
  Tags: ["0030"],
  Tests: ["0028", "0160"],
};

const INTRODUCTION = `# Decisions

This page is generated from the head of each decision by \`npm run docs\`.

A decision states the context, what was decided, what was rejected and what follows. It is here if it shapes the code in more than one place. What concerns one
mechanism only, with its figure and the alternative that was rejected, is a _detail_ and stands on the page of its engine or area: the README.md of the folder. A
decision that is marked as a detail here has not moved yet. Words are in the [glossary](../glossary.md).

Numbers and dates never change, and gaps in the numbers have no meaning. When a later decision changes an earlier one, the status of both names the other. A new decision takes
the next free number; its title states a rule.
`;

interface Decision {
  readonly file: string;
  readonly number: string;
  readonly title: string;
  readonly date: string;
  readonly status: string;
  readonly area: string;
  readonly isDetail: boolean;
}

/** Throws if the file does not begin with `# NNNN Title` and the list items Date, Status and Area; `Kind: detail` may follow. */
export function parseDecision(file: string, text: string): Decision {
  const head =
    /^# (?<number>\d{4}) (?<title>.+)\n\n- Date: (?<date>\d{4}-\d\d-\d\d)\n- Status: (?<status>(?:accepted|superseded by \[)[^]*?)\n- Area: (?<area>[^,\n]+).*\n(?<kind>- Kind: detail\n)?\n/.exec(
      text,
    )?.groups;
  if (head === undefined) throw new Error(`${file} does not begin with title, date, status and area`);
  const { number = "", title = "", date = "", status = "", area = "", kind } = head;
  if (!file.startsWith(`${number}-`)) throw new Error(`${file} has the number ${number} in its title`);
  return {
    file,
    number,
    title,
    date,
    status: status.replaceAll(/\s+/g, " "),
    area,
    isDetail: kind !== undefined,
  };
}

export function readDecisions(): Decision[] {
  return globSync(join(FOLDER, "[0-9]*.md"))
    .toSorted()
    .map((path) => parseDecision(basename(path), readFileSync(path, "utf8")));
}

export function decisionsPage(decisions: readonly Decision[]): string {
  const first = Object.entries(FIRST).map(
    ([title, numbers]) =>
      `**${title}**\n\n${numbers.map((number) => toItem(find(decisions, number))).join("")}\n`,
  );
  const areas = Object.entries(areasOf(decisions)).map(([area, about]) => {
    const items = decisions.filter((decision) => decision.area === area).map(toItem);
    return `## ${toHeading(area)}\n\n${about}\n\n${items.join("")}`;
  });
  return `${INTRODUCTION}
## Read these first

${first.join("")}${areas.join("\n")}`;
}

/** The areas of the index; one that a new decision has made up follows at the end. */
function areasOf(decisions: readonly Decision[]): Record<string, string> {
  const others = decisions.filter(({ area }) => !(area in AREAS)).map(({ area }) => [area, ""] as const);
  return { ...AREAS, ...Object.fromEntries(others) };
}

function find(decisions: readonly Decision[], number: string): Decision {
  const decision = decisions.find((each) => each.number === number);
  if (decision === undefined) throw new Error(`decision ${number} does not exist`);
  return decision;
}

function toItem({ file, number, title, status, isDetail }: Decision): string {
  const marks = [isDetail ? " _(detail)_" : "", status.startsWith("accepted") ? "" : ` (${status})`];
  return `- [${number}](${file}) ${title}${marks.join("")}\n`;
}

function toHeading(area: string): string {
  return area === "http" ? "HTTP" : area.slice(0, 1).toUpperCase() + area.slice(1);
}
