/** The supported surface: a member that disappears from a running program, or appears there undocumented, fails. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  namesOf,
  WORKER_PAGE_PATH,
  WORKER_SURFACE,
  workerPage,
} from "../../scripts/support/worker-surface.ts";
import { startWorker, type WorkerServer } from "./support/worker-server.ts";

let server: WorkerServer;
beforeAll(async () => {
  server = await startWorker("surface/src/server.ts");
});
afterAll(() => server.remove());

test("a program finds every member of the table, and no other", async () => {
  const found = (await (await fetch(`${server.url}/report`)).json()) as Record<string, string[]>;
  const table = Object.fromEntries(WORKER_SURFACE.map((section) => [section.name, namesOf(section)]));
  expect(found).toEqual({ ...table, globals: expect.arrayContaining(table["globals"] ?? []) });
});

test("the page is generated from the table", () => {
  expect(readFileSync(WORKER_PAGE_PATH, "utf8"), "run npm run docs").toBe(workerPage());
});
