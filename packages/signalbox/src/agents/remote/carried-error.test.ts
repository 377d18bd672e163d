import { SignalboxError } from "@signalbox/protocol";
import { expect, it } from "vitest";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { decodePacket, LinkError } from "../../engines/node-link/index.ts";
import { publicMessage } from "../instance/method-call.ts";
import { NotSentError } from "../placement/placement.ts";
import { encodeFailure, throwCarried } from "./carried-error.ts";
import { explainFailure } from "./explain-failure.ts";

/** What the caller's node gets for something that was thrown at the owner. */
function carry(thrown: unknown): unknown {
  try {
    throwCarried(decodePacket(encodeFailure(thrown)));
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

it.each([
  ["an error", new RangeError("too far")],
  ["a text", "plain text"],
  ["an object", { code: 5 }],
  ["nothing", undefined],
  ["a cycle", cycle()],
  ["an object without a prototype", Object.create(null)],
])("%s that an agent throws has the same message for a caller at another node", (_title, thrown) => {
  expect(publicMessage(carry(thrown))).toBe(publicMessage(thrown));
});

function cycle(): object {
  const value: { self?: object } = {};
  value.self = value;
  return value;
}

it("an error of the table keeps its status, headers, fields and cause", () => {
  const error = new SignalboxError("overloaded", {
    message: "full",
    headers: { "retry-after": "7" },
    cause: new TypeError("deep"),
  });
  const { id, status, message, headers, cause } = carry(error) as SignalboxError;
  expect({ id, status, message, headers }).toEqual({
    id: "overloaded",
    status: 503,
    message: "full",
    headers: { "retry-after": "7" },
  });
  expect(cause).toMatchObject({ name: "TypeError", message: "deep" });
});

it("work that was fenced may have run: only what is repeatable is tried again", () => {
  const fenced = carry(new InstanceFencedError("taken"));
  expect(fenced).toBeInstanceOf(InstanceFencedError);
  expect(explainFailure(fenced, true)).toBeInstanceOf(NotSentError);
  const explained = explainFailure(fenced, false);
  expect(explained).toMatchObject({ id: "agent_outcome_unknown", status: 503 });
  // `Retry-After` would ask a client to repeat it.
  expect((explained as SignalboxError).headers).toEqual({});
  // An agent that passes this error on must not look as if it had been fenced itself.
  expect(explained).not.toBeInstanceOf(InstanceFencedError);
  expect(explained).not.toBeInstanceOf(InstanceElsewhereError);
});

it.each([
  ["unreachable", false, "not sent"],
  ["overloaded", false, "not sent"],
  ["unknown", false, "not sent"],
  ["broken", false, "agent_outcome_unknown"],
  ["broken", true, "not sent"],
  ["cancelled", false, "agent_outcome_unknown"],
  ["too_large", true, "body_too_large"],
  ["answer_too_large", true, "agent_failed"],
  ["internal", true, "internal"],
])("a link failure %s (repeatable: %s) is %s", (code, isRepeatable, expected) => {
  const error = explainFailure(new LinkError({ code, message: "test" }), isRepeatable);
  expect(error instanceof NotSentError ? "not sent" : (error as SignalboxError).id).toBe(expected);
});
