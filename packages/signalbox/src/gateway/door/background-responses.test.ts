import { SignalboxError } from "@signalbox/protocol";
import { expect, it } from "vitest";
import type { Fields } from "../../core/fields.ts";
import { KeptAnswers } from "../exchange/kept-answers.ts";
import { BackgroundResponses } from "./background-responses.ts";

it("an account that starts all it can leaves places for another one, and ended responses leave theirs", async () => {
  const background = new BackgroundResponses({ now: () => 1000 });
  const answers = new KeptAnswers({ now: () => 1000 }).of("a caller");
  const ended = Promise.withResolvers<Response>();
  const start = (account: string) => background.start(account, answers, {}, () => ended.promise);
  const started: Fields[] = [];
  expect(() => {
    for (let i = 0; i < 1000; i++) started.push(start("greedy"));
  }).toThrow(SignalboxError);
  expect(started.length).toBeGreaterThan(500);
  expect(start("other")["status"]).toBe("in_progress");
  ended.resolve(Response.json({ output: [] }));
  await expect.poll(() => answers.find(String(started.at(-1)?.["id"]))?.["status"]).not.toBe("in_progress");
  expect(start("greedy")["status"]).toBe("in_progress");
  background.close();
});
