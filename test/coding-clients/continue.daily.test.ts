import { continueCli } from "./clients.ts";
import { testClient } from "./test-client.ts";

testClient(continueCli);
