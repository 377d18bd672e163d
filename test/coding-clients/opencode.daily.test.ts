import { opencode } from "./clients.ts";
import { testClient } from "./test-client.ts";

testClient(opencode);
