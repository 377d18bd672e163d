/** A short run; `npm run chaos -- --rolls 20` makes a longer one. */
import { expect, it } from "vitest";
import { runRolls } from "./rolling/run-rolls.ts";

const ROLLS = 1;

it(
  "rolling restarts behind a load balancer refuse no connection and fail no call",
  { timeout: 1_800_000 },
  async () => {
    const history = await runRolls({ rolls: ROLLS, balancer: "haproxy" });
    expect(history.violations, String(history)).toBe(0);
    expect(history.counted("rolls")).toBe(ROLLS);
    expect(history.counted("restarts")).toBe(3 * ROLLS);
    for (const name of [
      "gateway calls",
      "streams",
      "tag writes",
      "tag reads",
      "instance reads",
      "events acknowledged",
      "states received",
      "sockets closed with 1012",
      "activations in another process",
    ])
      expect(history.counted(name)).toBeGreaterThan(0);
  },
);
