import { qwenCode } from "./clients.ts";
import { testClient } from "./test-client.ts";

testClient(qwenCode);
