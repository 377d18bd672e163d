import { expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer } from "../support/test-server.ts";
import { runExample } from "./run-example.ts";

const TOUR = [
  /gateway tour-\w+: without a token 401, with one 200/,
  /call echo: 200, \d+ tokens in, \d+ out/,
  /tagged: tour-\w+/,
  /agent tour-\w+: 1 event, \S+/,
  /done/,
];

it("the Node script runs with one command, shows every part of the client and cleans up", async () => {
  const example = runExample("node-script", []);
  const code = await example.ended();
  for (const line of TOUR) expect(example.output()).toMatch(line);
  expect(code).toBe(0);
});

it("the Node script uses a running service if its URL is given", async () => {
  const server = await startTestServer({ environment: { WEBHOOK_SECRET: "a secret of the test" } });
  const example = runExample("node-script", [], { SIGNALBOX_URL: server.url, SIGNALBOX_TOKEN: ROOT_TOKEN });
  const code = await example.ended();
  for (const line of TOUR) expect(example.output()).toMatch(line);
  expect(code).toBe(0);
  await server.stop();
});
