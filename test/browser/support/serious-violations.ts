/** What axe finds on a page. */
import axe from "axe-core";
import type { Page } from "playwright-core";

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** Not among those that axe checks by default: who says what stands on a button must reach it (WCAG 2.5.3). */
const MORE_RULES = { "label-content-name-mismatch": { enabled: true } };

/** Returns the serious and critical violations that axe finds, one line each. */
export async function seriousViolations(page: Page, options: object = {}): Promise<string[]> {
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) {
    // Evaluated through the debugger, because the Content-Security-Policy of the page blocks a script tag.
    await page.evaluate(axe.source);
  }
  const violations = await page.evaluate<Violation[]>(
    // Of rules that are kept, axe reports only the first element: their lists would take longest.
    `axe.run(${JSON.stringify({ resultTypes: ["violations"], rules: MORE_RULES, ...options })}).then(({ violations }) => violations)`,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}
