/** The sections of CHANGELOG.md: `## Unreleased` first, then `## 1.2.3 (2026-11-17)`, newest first. */

export interface ChangelogSection {
  /** `Unreleased`, or a version. */
  readonly title: string;
  readonly date: string | null;
  readonly body: string;
}

const HEADING = /^## (\S+)(?: \((\d{4}-\d\d-\d\d)\))?$/;

/** Sections whose heading has neither form have an empty title. */
export function parseChangelog(text: string): ChangelogSection[] {
  return text
    .split(/^(?=## )/m)
    .filter((part) => part.startsWith("## "))
    .map((part) => {
      const [first = "", ...rest] = part.split("\n");
      const [, title = "", date = null] = HEADING.exec(first) ?? [];
      return { title, date, body: rest.join("\n").trim() };
    });
}

/** What stands in the way of a release of the version; empty if nothing does. */
export function changelogProblems(text: string, version: string): string[] {
  const sections = parseChangelog(text);
  const section = sections.find(({ title }) => title === version);
  if (sections.some(({ title }) => title === ""))
    return ['CHANGELOG.md has a heading other than "## Unreleased" and "## 1.2.3 (2026-11-17)"'];
  if (sections[0]?.title !== "Unreleased") return ['CHANGELOG.md does not begin with "## Unreleased"'];
  if (section === undefined) return [`CHANGELOG.md has no section "## ${version} (date)"`];
  if (section.date === null) return [`CHANGELOG.md: ${version} has no date`];
  return section.body === "" ? [`CHANGELOG.md: the section of ${version} is empty`] : [];
}
