import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { askFolder } from "./ask-folder.ts";
import { ProjectError } from "./create-project.ts";

function terminal(isTTY: boolean) {
  return {
    stdin: Object.assign(new PassThrough(), { isTTY }),
    stderr: Object.assign(new PassThrough(), { isTTY }),
  };
}

it.each([
  ["my project\n", "my project"],
  ["\n", "default"],
])("%j is an answer", async (typed, folder) => {
  const streams = terminal(true);
  const answer = askFolder("default", false, streams);
  streams.stdin.write(typed);
  expect(await answer).toBe(folder);
});

it.each(["\u0003", "\u0004"])("%j ends the question without a folder", async (typed) => {
  const streams = terminal(true);
  const answer = askFolder("default", false, streams);
  streams.stdin.write(typed);
  await expect(answer).rejects.toEqual(new ProjectError("no folder was given; nothing was written"));
});

it("nobody is asked without a terminal", async () => {
  expect(await askFolder("default", false, terminal(false))).toBe("default");
  expect(await askFolder("default", true, terminal(true))).toBe("default");
});
