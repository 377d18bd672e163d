import { expect, it } from "vitest";
import { Secret } from "../core/secret.ts";
import { createLogger } from "./logger.ts";

function capture(isPretty: boolean) {
  const lines: string[] = [];
  const logger = createLogger({
    level: "info",
    isPretty,
    destination: { write: (line) => void lines.push(line) },
  });
  return { lines, logger };
}

it("writes one JSON object per line, with time and level", () => {
  const { lines, logger } = capture(false);
  logger.info({ port: 1 }, "hello");
  logger.debug("not at this level");
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toEqual({
    level: "info",
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    port: 1,
    msg: "hello",
  });
});

it("writes readable lines on a terminal, with the stack of an error", () => {
  const { lines, logger } = capture(true);
  logger.warn({ port: 1, name: "x" }, "careful");
  logger.error({ err: new Error("boom") }, "failed");
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d .*warn .*careful port=1 name=x\n$/);
  expect(lines[1]).toMatch(/failed\nError: boom\n/);
});

it("writes a readable line for whatever was thrown", () => {
  const { lines, logger } = capture(true);
  for (const err of [null, "text", 5, Object.create(null), Object.assign(new Error("m"), { stack: 7 })])
    logger.error({ err }, "failed");
  expect(lines).toHaveLength(5);
  expect(lines.slice(0, 2).map((line) => line.split("\n")[1])).toEqual(["null", "text"]);
});

it("logs no credential, neither as a Secret nor under a known key or header", () => {
  for (const isPretty of [true, false]) {
    const { lines, logger } = capture(isPretty);
    logger.info(
      {
        key: new Secret("hunter2"),
        token: "hunter2",
        a: { password: "hunter2", headers: { authorization: "hunter2" } },
      },
      "x",
    );
    logger.error({ err: new Error("failed"), apiKey: "hunter2" }, "y");
    expect(lines.join("")).not.toContain("hunter2");
    expect(lines.join("")).toContain("[secret]");
  }
});
