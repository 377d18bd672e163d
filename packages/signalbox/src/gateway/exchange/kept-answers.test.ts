import { expect, it } from "vitest";
import { KeptAnswers, readLastEvent } from "./kept-answers.ts";

let now = 1000;
const clock = { now: () => now };
const message = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: [{ type: "output_text", text: "Hi" }],
};
const call = { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" };
const output = { type: "function_call_output", call_id: "c", output: "1" };
const ANSWER = { id: "resp_1", output: [message, call] };

it("completes a request that refers to items, and one that refers to an answer", () => {
  const mine = new KeptAnswers(clock).of("a");
  mine.keep({ input: "Hello" }, ANSWER);
  expect(mine.complete({ input: [{ type: "item_reference", id: "fc_1" }, output] })).toEqual({
    input: [call, output],
  });
  const hello = { type: "message", role: "user", content: "Hello" };
  expect(mine.complete({ previous_response_id: "resp_1", input: [output], model: "m" })).toEqual({
    model: "m",
    input: [hello, message, call, output],
  });
});

it("leaves what is not known, is another caller's, was not to be stored or is an hour old as it is", () => {
  const kept = new KeptAnswers(clock);
  const request = { input: [{ type: "item_reference", id: "fc_1" }], previous_response_id: "resp_1" };
  kept.of("a").keep({ input: "Hello", store: false }, ANSWER);
  expect(kept.of("a").complete(request)).toEqual(request);
  kept.of("a").keep({ input: "Hello" }, ANSWER);
  expect(kept.of("b").complete(request)).toEqual(request);
  expect(kept.of("a").complete(request)).not.toEqual(request);
  now += 3_600_001;
  expect(kept.of("a").complete(request)).toEqual(request);
});

it("names what it does not have, and completes a request with what is found elsewhere, for this once", () => {
  const [here, there] = [new KeptAnswers(clock).of("a"), new KeptAnswers(clock)];
  there.of("a").keep({ input: "Hello" }, ANSWER);
  const request = { input: [{ type: "item_reference", id: "fc_1" }, output], previous_response_id: "resp_1" };
  expect(here.missing(request)).toEqual(["fc_1", "resp_1"]);
  expect(there.of("a").missing(request)).toEqual([]);
  const found = there.of("a").lookUp(here.missing(request), 10_000);
  expect(here.withFound(found).complete(request)).toEqual(there.of("a").complete(request));
  expect(here.complete(request)).toEqual(request);
  expect(there.of("b").lookUp(["fc_1"], 10_000).size).toBe(0);
  expect(there.of("a").lookUp(["fc_1", "resp_1"], 100).size).toBe(1);
});

it("keeps no more than its bound, and drops what was kept longest ago", () => {
  const kept = new KeptAnswers(clock, 2000).of("a");
  for (let i = 0; i < 100; i++)
    kept.keep({ input: "Hello" }, { id: `resp_${i}`, output: [{ ...call, id: `fc_${i}` }] });
  const reference = (i: number) => ({ input: [{ type: "item_reference", id: `fc_${i}` }] });
  expect(kept.complete(reference(0))).toEqual(reference(0));
  expect(kept.complete(reference(99))).not.toEqual(reference(99));
});

it("reads the answer from the last event of a stream", () => {
  const event = (type: string) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, response: { ...ANSWER, text: "a\nb" } })}\n\n`;
  expect(readLastEvent(event("response.created"))).toBeNull();
  expect(readLastEvent("event: response.output_text.delta\ndata: {}\n\n")).toBeNull();
  for (const type of ["response.completed", "response.incomplete"]) {
    expect(readLastEvent(`event: response.output_text.done\ndata: {}\n\n${event(type)}`)).toMatchObject(
      ANSWER,
    );
  }
});
