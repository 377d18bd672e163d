import { SignalboxError } from "@signalbox/protocol";
import { expect, it } from "vitest";
import { toDocument, toFailure, toLine } from "./failure.ts";
import { runCli } from "./main.ts";

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

it.each(["account list --token t", "webhooks send generic --secret s"])(
  "`signalbox %s` tells that HTTP clients refuse the port of the address",
  async (words) => {
    let err = "";
    const code = await runCli([...words.split(" "), "--url", "http://127.0.0.1:9"], {
      out: { write: () => undefined },
      err: { write: (text) => (err += text) },
      environment: {},
      workingFolder: import.meta.dirname,
    });
    expect([code, err]).toEqual([
      1,
      "signalbox: cannot reach http://127.0.0.1:9: port 9 is reserved for another protocol, and HTTP clients refuse it; let the server listen on another port\n",
    ]);
  },
);

it("an error that nobody expected shows where it comes from", async () => {
  expect((await toFailure(new Error("odd"))).message).toContain("failure.test.ts");
});
