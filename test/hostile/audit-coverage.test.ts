/**
 * Every writing operation in `/openapi.json` leaves an entry in the audit log: refused without a token, refused without permission, and admitted.
 * A new route that is not recorded fails here.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN } from "../support/test-server.ts";
import { createFullAccount, type FullAccount, OWN } from "./support/full-account.ts";

let account: FullAccount;
beforeAll(async () => {
  account = await createFullAccount();
});
afterAll(() => account.close());

interface Operation {
  readonly method: string;
  readonly path: string;
}

async function writingOperations(): Promise<Operation[]> {
  const { body } = await account.server.api("GET", "/openapi.json");
  const { paths } = body as unknown as { paths: Record<string, object> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => method !== "get")
      .map((method) => ({ method: method.toUpperCase(), path })),
  );
}

function pathOf({ path }: Operation, isAbsent: boolean): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === "account_id") return OWN;
    // What is admitted must not delete what others need.
    return isAbsent ? "absent" : (account.existing[name] ?? "absent");
  });
  return path.startsWith("/zones/") ? `${filled}?account_id=${OWN}` : filled;
}

it("every writing operation is recorded, whoever calls it", async () => {
  const { server } = account;
  const operations = await writingOperations();
  expect(operations.length).toBeGreaterThan(35);
  const powerless = await server.token(["webhooks.read"], { account: OWN });
  const callers = [
    { name: "nobody", token: null, log: "/audit_logs", isAbsent: false },
    { name: "powerless", token: powerless, log: `/accounts/${OWN}/audit_logs`, isAbsent: false },
    { name: "root", token: ROOT_TOKEN, log: null, isAbsent: true },
  ];
  const missing: string[] = [];
  for (const [i, operation] of operations.entries()) {
    for (const { name, token, log, isAbsent } of callers) {
      const id = `audit-${name}-${i}`;
      const hasBody = operation.method !== "DELETE";
      const response = await fetch(server.url + pathOf(operation, isAbsent), {
        method: operation.method,
        headers: {
          "x-request-id": id,
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(hasBody ? { "content-type": "application/json" } : {}),
        },
        ...(hasBody ? { body: "[]" } : {}),
      });
      await response.arrayBuffer();
      const logs = log === null ? [`/accounts/${OWN}/audit_logs`, "/audit_logs"] : [log];
      const found = await Promise.all(
        logs.map(
          async (path) => (await server.api("GET", `${path}?request_id=${id}`)).body.result as object[],
        ),
      );
      const [entry, ...more] = found.flat() as { operation: string; action: { status: number } }[];
      const isRight =
        entry?.operation === `${operation.method} ${operation.path}` &&
        entry.action.status === response.status &&
        more.length === 0;
      if (!isRight) missing.push(`${operation.method} ${operation.path} by ${name}: ${response.status}`);
    }
  }
  expect(missing).toEqual([]);
});
