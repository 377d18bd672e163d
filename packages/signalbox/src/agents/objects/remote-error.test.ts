import { SignalboxError } from "@signalbox/protocol";
import { expect, it } from "vitest";
import { toRemoteError } from "./remote-error.ts";

it("a caller may try again when the object could not write, its node stops, or the outcome is unknown, as in the originals", () => {
  expect(toRemoteError(new SignalboxError("agent_outcome_unknown"))).toMatchObject({ retryable: true });
  expect(toRemoteError(new SignalboxError("storage_unavailable"))).toMatchObject({ retryable: true });
  expect(toRemoteError(new SignalboxError("stopping"))).toMatchObject({ retryable: true });
  expect(toRemoteError(new SignalboxError("write_outcome_unknown"))).toMatchObject({ retryable: true });
  expect(toRemoteError(new SignalboxError("overloaded"))).toMatchObject({ overloaded: true });
  expect(toRemoteError(new SignalboxError("invalid_request"))).toMatchObject({ retryable: false });
});
