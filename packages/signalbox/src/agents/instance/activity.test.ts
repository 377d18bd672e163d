import { describe, expect, it } from "vitest";
import { Activity, type ActivityEvent, ActivityHub } from "./activity.ts";
import { keyOf } from "./instance-ref.ts";

const activityOf = (hub: ActivityHub, name: string, account = "default") => {
  const ref = { account, agent: "counter", name };
  return new Activity(hub, keyOf(ref), ref);
};

describe("the activity of an instance", () => {
  it("is its last twenty events, newest first, each with its details", () => {
    const activity = activityOf(new ActivityHub(), "a");
    activity.record("start", 1, { new: true });
    for (let i = 0; i < 50; i++) {
      activity.recordTurn(i, "rpc", `call ${i}`, 1.234, i === 48 ? "it failed" : null);
      activity.recordState(i, 10 + i, "server");
    }
    activity.record("hibernate", 60, {});
    const events = activity.recent();
    expect(events).toHaveLength(20);
    expect(events.slice(0, 5).map(({ type, detail }) => ({ type, detail }))).toEqual([
      { type: "hibernate", detail: {} },
      { type: "state", detail: { bytes: 59, source: "server" } },
      { type: "turn", detail: { kind: "rpc", label: "call 49", ms: 1.23 } },
      { type: "state", detail: { bytes: 58, source: "server" } },
      { type: "turn:error", detail: { kind: "rpc", label: "call 48", ms: 1.23, error: "it failed" } },
    ]);
    expect(events[0]).toMatchObject({ agent: "counter", name: "a", timestamp: "1970-01-01T00:00:00.060Z" });
  });

  it("is sent to listeners of this instance, and to no others", () => {
    const hub = new ActivityHub();
    const received: ActivityEvent[] = [];
    const stop = hub.listen("default/counter/a", (event) => received.push(event));
    activityOf(hub, "b").recordState(1, 2, "server");
    activityOf(hub, "a", "other").recordState(1, 2, "server");
    const activity = activityOf(hub, "a");
    activity.recordState(1, 2, "server");
    for (let i = 0; i < 30; i++) activity.recordState(2, 3, "client");
    stop();
    activity.recordState(4, 5, "server");
    expect(received).toHaveLength(31);
    // Events that were sent do not change when their slots are reused.
    expect(received[0]).toMatchObject({ type: "state", detail: { bytes: 2, source: "server" } });
  });
});
