/**
 * `npm run docs`: writes the pages that are generated from code. A test fails when a page is out of date. `npm run docs -- screenshots` takes the
 * pictures of README and the site from a running service in Chromium (`screenshots.ts` has its options).
 */
import { writeFileSync } from "node:fs";
import { readOpenApi, recordExamples } from "./api-examples/record.ts";
import { writeApiPages, writeExamples } from "./support/api-pages.ts";
import { cliPage, CLI_PAGE_PATH } from "./support/cli-page.ts";
import { decisionsPage, DECISIONS_PAGE_PATH, readDecisions } from "./support/decisions-page.ts";
import { configurationPage, CONFIGURATION_PAGE_PATH } from "./support/configuration-page.ts";
import { errorsPage, ERRORS_PAGE_PATH } from "./support/errors-page.ts";
import { metricsPage, METRICS_PAGE_PATH } from "./support/metrics-page.ts";
import { providersPage, PROVIDERS_PAGE_PATH } from "./support/providers-page.ts";
import { promisesPage, PROMISES_PAGE_PATH } from "./support/promises-page.ts";
import { WORKER_PAGE_PATH, workerPage } from "./support/worker-surface.ts";

if (process.argv[2] === "screenshots") {
  process.argv.splice(2, 1);
  await import("./screenshots.ts");
} else {
  writeFileSync(CLI_PAGE_PATH, cliPage());
  writeFileSync(DECISIONS_PAGE_PATH, decisionsPage(readDecisions()));
  writeFileSync(CONFIGURATION_PAGE_PATH, configurationPage());
  writeFileSync(ERRORS_PAGE_PATH, errorsPage());
  writeFileSync(PROVIDERS_PAGE_PATH, providersPage());
  writeFileSync(PROMISES_PAGE_PATH, promisesPage());
  writeFileSync(WORKER_PAGE_PATH, workerPage());
  writeFileSync(METRICS_PAGE_PATH, await metricsPage());

  writeExamples(await recordExamples());
  // The pages show the description with these examples.
  writeApiPages(await readOpenApi());
}
