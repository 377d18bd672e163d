import { expect, test } from "vitest";
import type { Reference } from "./references.ts";
import { type SessionHost, SessionReferences } from "./session-references.ts";
import { MESSAGES } from "./wire-message.ts";

function start(): { references: SessionReferences; sent: [kind: number, id: Reference][] } {
  const sent: [number, Reference][] = [];
  const references = new SessionReferences(1, { objectStub: null } as unknown as SessionHost, {
    send: (kind, id) => void sent.push([kind, id]),
    call: () => Promise.resolve(null),
    changed: () => undefined,
  });
  return { references, sent };
}

test("the signal of a call is released when the call was answered, and aborts nothing after that", () => {
  const { references, sent } = start();
  const caller = new AbortController();
  references.encode([caller.signal]);
  const [signal = 0] = references.newSignals;
  expect(references.answered([signal], () => "answer")).toBe("answer");
  expect(sent).toEqual([[MESSAGES.release, signal]]);
  caller.abort();
  expect(sent).toHaveLength(1);
});

test("the signal of a call aborts while something of the answer is in use", () => {
  const { references, sent } = start();
  const [first, second] = [new AbortController(), new AbortController()];
  references.encode([first.signal, second.signal]);
  const [aborted = 0, released = 0] = references.newSignals;
  const body = references.answered(references.newSignals, () => references.target(2));
  expect(sent).toEqual([]);
  first.abort();
  expect(sent).toEqual([[MESSAGES.abort, aborted]]);
  body.dispose?.();
  expect(sent.slice(1)).toEqual([
    [MESSAGES.release, 2],
    [MESSAGES.release, released],
  ]);
});
