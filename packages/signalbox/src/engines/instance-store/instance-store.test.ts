import { describe } from "vitest";
import { testInstanceStore } from "./instance-store-contract.ts";

describe.each(["journal", "plain"] as const)("the %s engine", (engine) => {
  testInstanceStore(engine);
});
