import { expect, it } from "vitest";
import { addPulses, AgentPulses, PULSE_MINUTES, pulseP95 } from "./agent-pulse.ts";

const NOW = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const REF = { account: "default", agent: "a" };

it("counts the turns of the last hour by minute, and forgets earlier ones", () => {
  const pulses = new AgentPulses();
  for (const minutes of [200, 60, 59, 1, 0, 0])
    pulses.of(REF).add(NOW - minutes * MINUTE_MS, 1, minutes === 1);
  const [figures] = pulses.read("default", NOW);
  expect(figures?.turns).toHaveLength(PULSE_MINUTES);
  expect([figures?.turns[0], figures?.turns.at(-2), figures?.turns.at(-1)]).toEqual([1, 1, 2]);
  expect(figures?.turns.reduce((sum, count) => sum + count, 0)).toBe(4);
  expect(figures?.failed).toBe(1);
  expect(pulses.read("other", NOW)).toEqual([]);
});

it("estimates the 95th percentile over nodes, at most half too large", () => {
  const [one, other] = [new AgentPulses(), new AgentPulses()];
  for (let i = 0; i < 90; i++) one.of(REF).add(NOW, 2, false);
  for (let i = 0; i < 10; i++) other.of(REF).add(NOW, 100, false);
  const sum = addPulses([...one.read("default", NOW), ...other.read("default", NOW)]).get("a");
  expect(sum?.turns.at(-1)).toBe(100);
  const p95 = sum === undefined ? null : pulseP95(sum);
  expect(p95).toBeGreaterThanOrEqual(100);
  expect(p95).toBeLessThan(150);
  expect(pulseP95({ agent: "a", turns: [], failed: 0, durations: [] })).toBeNull();
});
