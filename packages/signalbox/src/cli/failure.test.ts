import { SignalboxError } from "@signalbox/protocol";
import { expect, it } from "vitest";
import { toDocument, toFailure, toLine } from "./failure.ts";

it("a database that fails during the start is told in one line, without a stack", async () => {
  const failure = await toFailure(
    new SignalboxError("storage_unavailable", {
      message: "Storage is unavailable: PostgreSQL cannot be reached",
    }),
  );
  expect(toLine(failure)).toBe(
    "signalbox: Storage is unavailable: PostgreSQL cannot be reached (code 7013)\n",
  );
  expect(JSON.parse(toDocument(failure))).toMatchObject({
    errors: [{ code: 7013, reason: "storage" }],
    exit_code: 1,
  });
});

it("an error that nobody expected shows where it comes from", async () => {
  expect((await toFailure(new Error("odd"))).message).toContain("failure.test.ts");
});
