/** `docs/decisions/README.md`: the index of decisions, from the head of each file. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../docs/decisions");

export const DECISIONS_PAGE_PATH = join(FOLDER, "README.md");

/** The decisions that explain most of the code, in the order in which to read them. */
const FIRST = [
  "0001",
  "0002",
  "0088",
  "0003",
  "0091",
  "0078",
  "0010",
  "0013",
  "0015",
  "0021",
  "0020",
  "0049",
  "0028",
  "0084",
  "0030",
] as const;

const INTRODUCTION = `# Decisions

This page is generated from the head of each decision by \`npm run docs\`.

A decision states the context, what was decided, what was rejected and what follows. Its number and its date never change. When a later decision changes an earlier
one, the status of both names the other. A new decision takes the next free number. Gaps in the numbers have no meaning.
`;

interface Decision {
  readonly file: string;
  readonly number: string;
  readonly title: string;
  readonly date: string;
  readonly status: string;
  readonly area: string;
}

/** Throws if the file does not begin with `# NNNN Title` and the list items Date, Status and Area. */
export function parseDecision(file: string, text: string): Decision {
  const head =
    /^# (?<number>\d{4}) (?<title>.+)\n\n- Date: (?<date>\d{4}-\d\d-\d\d)\n- Status: (?<status>(?:accepted|superseded by \[)[^]*?)\n- Area: (?<area>.+)\n\n/.exec(
      text,
    )?.groups;
  if (head === undefined) throw new Error(`${file} does not begin with title, date, status and area`);
  const { number = "", title = "", date = "", status = "", area = "" } = head;
  if (!file.startsWith(`${number}-`)) throw new Error(`${file} has the number ${number} in its title`);
  return { file, number, title, date, status: status.replaceAll(/\s+/g, " "), area };
}

export function readDecisions(): Decision[] {
  return globSync(join(FOLDER, "[0-9]*.md"))
    .toSorted()
    .map((path) => parseDecision(basename(path), readFileSync(path, "utf8")));
}

export function decisionsPage(decisions: readonly Decision[]): string {
  const first = FIRST.map((number) => {
    const decision = decisions.find((each) => each.number === number);
    if (decision === undefined) throw new Error(`decision ${number} does not exist`);
    return decision;
  });
  return `${INTRODUCTION}
## Read these first

${first.map(({ file, number, title, area }) => `- [${number}](${file}) ${title} (${area})\n`).join("")}
## All decisions

| Number | Decision | Date | Status | Area |
| --- | --- | --- | --- | --- |
${decisions.map(toRow).join("")}`;
}

function toRow({ file, number, title, date, status, area }: Decision): string {
  return `| [${number}](${file}) | ${title} | ${date} | ${status} | ${area} |\n`;
}
