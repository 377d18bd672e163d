/** `npm run docs`: writes the reference pages that are generated from code. A test fails when one is out of step. */
import { writeFileSync } from "node:fs";
import { errorsPage, ERRORS_PAGE_PATH } from "./support/errors-page.ts";
import { promisesPage, PROMISES_PAGE_PATH } from "./support/promises-page.ts";

writeFileSync(ERRORS_PAGE_PATH, errorsPage());
writeFileSync(PROMISES_PAGE_PATH, promisesPage());
