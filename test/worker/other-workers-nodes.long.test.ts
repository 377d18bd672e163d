/** Several workers on two nodes: their objects are on both. */
import { testOtherWorkers } from "./support/other-workers-cases.ts";

testOtherWorkers(2);
