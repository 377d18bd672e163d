import { copilotCli } from "./clients.ts";
import { testClient } from "./test-client.ts";

testClient(copilotCli);
