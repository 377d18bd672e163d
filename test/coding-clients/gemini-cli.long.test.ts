import { geminiCli } from "./clients.ts";
import { testClient } from "./test-client.ts";

testClient(geminiCli);
