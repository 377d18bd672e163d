import { claudeCode } from "./clients.ts";
import { testClient } from "./test-client.ts";

testClient(claudeCode);
