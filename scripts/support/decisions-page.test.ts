import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { AREAS, decisionsPage, DECISIONS_PAGE_PATH, parseDecision, readDecisions } from "./decisions-page.ts";

it("the index of decisions is up to date with the files (otherwise: npm run docs)", () => {
  expect(readFileSync(DECISIONS_PAGE_PATH, "utf8")).toBe(decisionsPage(readDecisions()));
});

it("a decision without date, status or area is refused", () => {
  const head = "# 0001 Title\n\n- Date: 2026-11-15\n- Status: accepted\n- Area: http\n\n";
  expect(parseDecision("0001-title.md", head)).toMatchObject({
    title: "Title",
    status: "accepted",
    area: "http",
  });
  expect(() => parseDecision("0001-title.md", head.replace("- Status: accepted\n", ""))).toThrow(
    "0001-title.md",
  );
  expect(() => parseDecision("0002-title.md", head)).toThrow("0002-title.md");
});

it("a decision belongs to the first area that it names, and may be marked as a detail", () => {
  const head =
    "# 0001 Title\n\n- Date: 2026-11-15\n- Status: accepted\n- Area: http, agents\n- Kind: detail\n\n";
  const decision = parseDecision("0001-title.md", head);
  expect(decision).toMatchObject({ area: "http", isDetail: true });
});

it("every decision has one of the areas of the index", () => {
  expect(readDecisions().filter(({ area }) => !(area in AREAS))).toEqual([]);
});

it("when the status of a decision names another, the status of the other names it", () => {
  const links = readDecisions().flatMap(({ number, status }) =>
    [...status.matchAll(/\[(\d{4})\]/g)].map(([, other = ""]) => [number, other] as const),
  );
  const known = new Set(links.map((pair) => pair.join(" ")));
  expect(links.filter(([number, other]) => !known.has(`${other} ${number}`))).toEqual([]);
});

it("every decision that the source cites exists and is not superseded", () => {
  const root = join(import.meta.dirname, "../..");
  const current = new Set(
    readDecisions().flatMap(({ number, status }) => (status.startsWith("accepted") ? [number] : [])),
  );
  const files = globSync("{packages/*/{src,bin},test,bench,scripts}/**/*.{ts,tsx,js}", { cwd: root });
  const cited = files.flatMap((path) =>
    [...readFileSync(join(root, path), "utf8").matchAll(/docs\/decisions\/(\d{4})/g)].map(
      ([, number = ""]) => `${path}: ${number}`,
    ),
  );
  expect(cited.length).toBeGreaterThan(0);
  expect(cited.filter((entry) => !current.has(entry.slice(-4)))).toEqual([]);
});
