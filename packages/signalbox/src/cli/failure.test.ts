import { SignalboxClient } from "@signalbox/client";
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

it("a port that fetch refuses is told as such", async () => {
  const client = new SignalboxClient({ url: "http://127.0.0.1:9", token: "t", maxAttempts: 1 });
  const failure = await client.accounts
    .list()
    .all()
    .then(() => null, toFailure);
  expect(failure?.message).toBe(
    "cannot reach http://127.0.0.1:9: port 9 is reserved for another protocol, and HTTP clients refuse it; let the server listen on another port",
  );
});

it("an error that nobody expected shows where it comes from", async () => {
  expect((await toFailure(new Error("odd"))).message).toContain("failure.test.ts");
});
