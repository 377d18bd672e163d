/** Several workers on one server. */
import { testOtherWorkers } from "./support/other-workers-cases.ts";

testOtherWorkers(1);
