import { expect, it } from "vitest";
import { LostMembers } from "./lost-members.ts";
import type { ClusterMember } from "../database/membership.ts";

const HOUR_MS = 60 * 60_000;

const member = (inc: string, name: string, state: ClusterMember["state"] = "up"): ClusterMember => ({
  inc,
  name,
  host: "127.0.0.1",
  port: 1,
  version: "0.1.0",
  state,
  joinedAt: 0,
  ageMs: 500,
});

it("a node that disappears while it is up is lost, and one that drained is not", () => {
  const lost = new LostMembers();
  const [a, b, c] = [member("1", "a"), member("2", "b"), member("3", "c", "draining")];
  lost.update([a, b, c], [a], 10_000);
  expect(lost.list([a], 10_000)).toEqual([{ inc: "2", name: "b", version: "0.1.0", lastSeenAt: 9500 }]);
});

it("a lost node is forgotten when one with its name has joined, or after an hour", () => {
  const lost = new LostMembers();
  const [a, b] = [member("1", "a"), member("2", "b")];
  lost.update([a, b], [a], 10_000);
  expect(lost.list([a, member("3", "b")], 11_000)).toEqual([]);
  expect(lost.list([a], HOUR_MS)).toHaveLength(1);
  expect(lost.list([a], 10_000 + HOUR_MS)).toEqual([]);
});
