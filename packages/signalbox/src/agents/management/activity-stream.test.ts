import { expect, it } from "vitest";
import { ActivityHub } from "../instance/activity.ts";
import { ActivityStreams } from "./activity-stream.ts";

it("a closed stream receives no more events, even if its reader has not read everything", async () => {
  const hub = new ActivityHub();
  const streams = new ActivityStreams(hub);
  const stream = streams.open("a/b");
  const errors: unknown[] = [];
  stream.on("error", (error) => errors.push(error));
  streams.close();
  hub.emit("a/b", () => ({ type: "start", agent: "a", name: "b", timestamp: "", detail: {} }));
  expect(hub.hasListeners).toBe(false);
  const text: Buffer[] = [];
  for await (const chunk of stream) text.push(chunk as Buffer);
  expect(Buffer.concat(text).toString()).toBe(": listening\n\n");
  expect(errors).toEqual([]);
});
