import type { TagJob } from "@signalbox/client";
import { expect, it } from "vitest";
import { filtersOf, remainingMs } from "./job-words.ts";

const QUERY = { tag: [], type: [], id: [], name: null, case_insensitive: false };
const START = Date.parse("2026-11-18T12:00:00.000Z");
const JOB: TagJob = {
  id: "j",
  operation: "patch",
  tags: { env: "prod" },
  query: QUERY,
  state: "running",
  actor: "root",
  total: 1000,
  processed: 250,
  changed: 250,
  unchanged: 0,
  failed: 0,
  created_at: new Date(START - 5000).toISOString(),
  started_at: new Date(START).toISOString(),
  ended_at: null,
};

it("the filters of a job are listed one by one", () => {
  expect(filtersOf(QUERY)).toEqual([]);
  expect(
    filtersOf({
      tag: ["env=prod", "!tier"],
      type: ["worker", "zone"],
      id: ["a"],
      name: "x",
      case_insensitive: true,
    }),
  ).toEqual([
    "env=prod",
    "!tier",
    "type: worker, zone",
    "ID: a",
    "name contains: x",
    "upper and lower case are equal",
  ]);
});

it("the remaining time is that of the resources that are left, at the rate since the start", () => {
  expect(remainingMs(JOB, START + 2000)).toBe(6000);
  expect(remainingMs({ ...JOB, processed: 0 }, START + 2000)).toBe(null);
  expect(remainingMs({ ...JOB, started_at: null }, START + 2000)).toBe(null);
  expect(remainingMs({ ...JOB, state: "done" }, START + 2000)).toBe(null);
  // Resources that were tagged after the count are not visited, but others may have been tagged like them.
  expect(remainingMs({ ...JOB, processed: 1200 }, START + 2000)).toBe(0);
});
