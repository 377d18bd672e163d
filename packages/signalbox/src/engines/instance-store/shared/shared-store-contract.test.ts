import { describe } from "vitest";
import { testInstanceStore } from "../instance-store-contract.ts";
import { useSharedTables } from "./shared-store-fixture.ts";

describe("the shared engine", () => {
  const tables = useSharedTables();
  testInstanceStore("shared", async (_engine, options) => (await tables.start(options)).store);
});
