import { codex } from "./clients.ts";
import { testClient } from "./test-client.ts";

testClient(codex);
